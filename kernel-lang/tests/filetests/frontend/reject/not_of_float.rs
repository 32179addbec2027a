#[kernel]
fn k(y: PtrMut<f32>, a: f32) {
    store(y, !a);
}
