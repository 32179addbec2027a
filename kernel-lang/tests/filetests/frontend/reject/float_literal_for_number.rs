#[kernel]
fn k<T: Number>(y: PtrMut<T>, a: T) {
    store(y, a * 0.5);
}
