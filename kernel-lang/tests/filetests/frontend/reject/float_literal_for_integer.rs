#[kernel]
fn k(y: PtrMut<i32>, a: i32) {
    store(y, a + 1.5);
}
