#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y + arange(0, 4), x.load([0], [4]));
}
