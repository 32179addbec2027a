#[kernel]
fn k(y: PtrMut<u128>) {
    store(y, 1);
}
