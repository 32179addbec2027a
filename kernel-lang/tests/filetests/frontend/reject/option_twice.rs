#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, m: bool) {
    store(y, load(x, mask = m, mask = m));
}
