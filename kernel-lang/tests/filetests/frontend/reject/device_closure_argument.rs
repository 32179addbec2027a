#[device]
fn f(x: f32) -> f32 {
    x
}

#[kernel]
fn k(y: PtrMut<f32>) {
    store(y, f(|a, b| a));
}
