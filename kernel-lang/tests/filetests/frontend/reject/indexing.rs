#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    store(y, x[n]);
}
