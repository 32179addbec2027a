#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    if n > 0 {
        let value = 1.0f32;
    }
    store(y, value);
}
