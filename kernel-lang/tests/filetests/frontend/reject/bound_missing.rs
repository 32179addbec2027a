#[kernel]
fn k<T>(x: Ptr<T>, y: PtrMut<T>) {
    store(y, load(x));
}
