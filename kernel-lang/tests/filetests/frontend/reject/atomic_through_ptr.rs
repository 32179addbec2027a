#[kernel]
fn k(y: Ptr<i32>) {
    atomic_add(y, 1);
}
