#[kernel]
fn k(y: PtrMut<i32>) {
    atomic_store(y, atomic_load(y, sem = "release"));
}
