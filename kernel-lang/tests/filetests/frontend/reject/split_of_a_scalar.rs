#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let (a, b) = split(load(x));
    store(y, a + b);
}
