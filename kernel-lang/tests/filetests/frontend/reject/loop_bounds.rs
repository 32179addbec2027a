#[kernel]
fn k(y: PtrMut<f32>, n: f32) {
    for i in 0..n {
        store(y + i, 1.0);
    }
}
