#[kernel(N = 64, M = 32)]
fn k<const N: usize, const M: usize>(y: PtrMut<i64>) {
    store(y + arange(0, N), arange(0, N) + arange(0, M));
}
