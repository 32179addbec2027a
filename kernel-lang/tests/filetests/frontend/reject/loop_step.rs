#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    for i in range(n, 0, -1) {
        store(y + i, 1.0);
    }
}
