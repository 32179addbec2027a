#[kernel(N = 64)]
fn k<const N: usize>(y: PtrMut<i64>) {
    let a = arange(0, N);
    store(y + a, a[(.., None)]);
}
