#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<i32>) {
    let a = load(x);
    store(y, umulhi(a, 5));
}
