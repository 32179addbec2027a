#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y + arange(0, 64), gather(x, arange(0, 64), 0));
}
