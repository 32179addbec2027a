#[kernel]
fn k<T: Float>(x: Ptr<T>, y: PtrMut<T>) {
    let v = load(x + arange(0, 64));
    store(y, max(v, 0));
    store(y + 1, v.min(-1));
    store(y + 2, sum(max(v, 1)));
}
