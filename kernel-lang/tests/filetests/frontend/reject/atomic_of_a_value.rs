#[kernel]
fn k(y: PtrMut<i32>) {
    atomic_add(load(y), 1);
}
