#[kernel]
fn k(y: PtrMut<u32>, a: u32, b: i64) {
    store(y, a << b);
}
