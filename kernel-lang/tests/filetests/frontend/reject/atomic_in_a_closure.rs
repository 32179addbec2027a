#[kernel]
fn k(y: PtrMut<i32>) {
    let s = reduce(arange(0, 32) as i32, 0, |a, b| a + b + atomic_add(y, 1));
    store(y, s);
}
