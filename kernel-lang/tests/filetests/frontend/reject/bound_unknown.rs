#[kernel]
fn k<T: Flaot>(x: Ptr<T>, y: PtrMut<T>) {
    store(y, load(x));
}
