#[kernel]
fn k(y: PtrMut<i32>) {
    let old = atomic_store(y, 1);
    store(y, old);
}
