#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<f32>, z: Ptr<f64>) {
    let a = load(x);
    let b = load(z);
    store(y, log1p(a));
    store(y, pow(2.0f32, b));
    store(y, pow(b));
    let c = ffs(b);
    store(y, isnan(b));
}
