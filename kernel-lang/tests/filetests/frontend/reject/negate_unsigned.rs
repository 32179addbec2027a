#[kernel]
fn k(y: PtrMut<u32>, a: u32) {
    store(y, -a);
}
