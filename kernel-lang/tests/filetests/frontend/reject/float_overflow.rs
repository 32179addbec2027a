#[kernel]
fn k(y: PtrMut<f16>) {
    store(y, 1e6);
}
