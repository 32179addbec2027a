#[kernel]
fn k<T: Number>(x: Ptr<T>, y: PtrMut<T>) {
    store(y, sqrt(load(x)));
}
