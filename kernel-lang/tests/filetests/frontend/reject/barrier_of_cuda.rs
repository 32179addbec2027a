#[kernel]
fn k(y: PtrMut<i32>) {
    syncthreads();
}
