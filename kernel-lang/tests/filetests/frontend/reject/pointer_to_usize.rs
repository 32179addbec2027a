#[kernel]
fn k(x: Ptr<isize>, y: PtrMut<usize>) {
    store(y, load(x));
}
