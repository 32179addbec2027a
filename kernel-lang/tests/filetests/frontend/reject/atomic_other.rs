#[kernel]
fn k(y: PtrMut<i32>, on: bool) {
    atomic_xchg(y, 1, mask = on, other = 3);
}
