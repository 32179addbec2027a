#[kernel]
fn k(y: PtrMut<i32>, n: usize) {
    let at = arange(0, 32);
    atomic_add(y + at, 1, at < n);
}
