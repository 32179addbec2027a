#[kernel]
fn k(y: PtrMut<u32>) {
    store(y, umulhi(3, 5));
}
