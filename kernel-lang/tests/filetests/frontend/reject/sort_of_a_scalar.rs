#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<i32>) {
    store(y, sort(load(x)));
}
