#[kernel]
fn k(y: PtrMut<i32>) {
    debug_barrier(0);
}
