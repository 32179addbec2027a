#[kernel(T = [u8, i32])]
fn k<T: Int>(y: PtrMut<T>, a: T) {
    store(y, a + 300);
}
