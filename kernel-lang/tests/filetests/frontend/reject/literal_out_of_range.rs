#[kernel]
fn k(y: PtrMut<u8>, a: u8) {
    store(y, a + 300);
}
