#[kernel]
fn k<T: Float>(y: PtrMut<T>) {
    atomic_xor(y, 1);
}
