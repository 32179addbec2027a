mod inner {
    #[device]
    fn f(x: f32) -> f32 {
        g(x)
    }
}

#[device]
fn g(x: f32) -> f32 {
    x
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, f(load(x)));
    store(y, inner::f(load(x)));
    store(y, outer::f(load(x)));
}
