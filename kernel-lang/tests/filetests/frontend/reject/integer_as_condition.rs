#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    if n {
        store(y, 1.0);
    }
}
