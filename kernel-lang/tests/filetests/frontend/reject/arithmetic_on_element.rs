#[kernel]
fn k<T: Element>(x: Ptr<T>, y: PtrMut<T>) {
    store(y, load(x) + load(x + 1));
}
