#[kernel]
fn k(y: PtrMut<u8>) {
    let old = atomic_add(y, 1);
    store(y, old);
}
