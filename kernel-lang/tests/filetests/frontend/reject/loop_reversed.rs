#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    for i in (0..n).rev().step_by(2) {
        store(y + i, 1.0);
    }
}
