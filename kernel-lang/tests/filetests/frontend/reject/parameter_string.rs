#[kernel]
fn k(x: String, y: PtrMut<f32>) {
    store(y, 1.0);
}
