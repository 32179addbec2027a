#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y + arange(0, 2), cat(load(x), load(x + 1)));
}
