#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y + arange(0, 96), flip(load(x + arange(0, 96))));
}
