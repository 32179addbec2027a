#[kernel(N = 64)]
fn ceil_divide<const N: usize>(y: PtrMut<i64>, u: PtrMut<u32>, n: usize, a: u32, b: i32) {
    store(y, cdiv(n, N));
    store(y + 1, n.cdiv(b));
    store(u, cdiv(a, 7));
    store(u + arange(0, N), cdiv(arange(0, N) as u32, a));
}
