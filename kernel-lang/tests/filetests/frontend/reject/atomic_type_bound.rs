#[kernel]
fn k<T: Float>(y: PtrMut<T>) {
    atomic_max(y, 1);
}
