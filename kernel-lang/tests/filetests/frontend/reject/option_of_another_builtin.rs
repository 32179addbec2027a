#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, m: bool) {
    store(y, exp(load(x), mask = m));
}
