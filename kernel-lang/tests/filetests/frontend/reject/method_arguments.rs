#[kernel]
fn k(y: PtrMut<f32>, a: f32) {
    store(y, a.max(1.0, 2.0));
    store(y, a.to(f32));
}
