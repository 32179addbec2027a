#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, x.load());
}
