#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<i32>) {
    let a = load(x);
    store(y, copysign(a, a, axis = 0));
    store(y, copysign(a, a));
    store(y, copysign(a));
}
