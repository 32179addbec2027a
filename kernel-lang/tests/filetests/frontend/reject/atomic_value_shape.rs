#[kernel]
fn k(y: PtrMut<i32>) {
    atomic_cas(y, arange(0, 32) as i32, 1);
}
