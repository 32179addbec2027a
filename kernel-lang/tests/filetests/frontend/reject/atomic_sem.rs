#[kernel]
fn k(y: PtrMut<i32>) {
    atomic_add(y, 1, sem = "seq_cst");
}
