#[kernel(target = 64)]
fn k<const target: usize>(y: PtrMut<i64>) {
    store(y, target());
}
