#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, on: bool) {
    store(y, load(x, volatile = on));
}
