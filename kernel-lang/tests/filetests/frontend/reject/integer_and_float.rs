#[kernel]
fn k(y: PtrMut<f32>, a: i32, b: f32) {
    store(y, a * b);
}
