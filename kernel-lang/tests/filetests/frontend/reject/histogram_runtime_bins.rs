#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    store(y + arange(0, 64), histogram(load(x + arange(0, 64)), n));
}
