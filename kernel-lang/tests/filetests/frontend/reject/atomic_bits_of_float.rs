#[kernel]
fn k(y: PtrMut<f32>) {
    atomic_or(y, 1);
}
