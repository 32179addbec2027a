#[kernel]
fn k(y: PtrMut<f32>, m: bool, a: f32, b: f64) {
    store(y, select(m, a, b));
}
