#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x);
    store(y, v ** 2.0);
}
