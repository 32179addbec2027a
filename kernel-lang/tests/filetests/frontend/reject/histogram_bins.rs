#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<i32>) {
    store(y + arange(0, 100), histogram(load(x + arange(0, 64)), 100));
}
