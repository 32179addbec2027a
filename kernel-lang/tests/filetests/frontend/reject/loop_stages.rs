#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    for i in range(0, n, 4, num_stages = 3) {
        store(y + i, 1.0);
    }
}
