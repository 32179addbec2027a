#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    for (i, j) in 0..n {
        store(y + i, 1.0);
    }
}
