#[kernel]
fn k<T: Int>(x: Ptr<T>, y: PtrMut<T>) {
    let a = load(x);
    store(y, umulhi(a, a));
}
