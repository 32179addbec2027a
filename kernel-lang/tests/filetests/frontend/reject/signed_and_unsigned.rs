#[kernel]
fn k(y: PtrMut<i32>, a: i32, b: u32) {
    store(y, a + b);
}
