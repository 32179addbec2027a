#[kernel]
fn k(y: PtrMut<i64>, n: usize) {
    let a = swizzle2d(n, n, n, n);
    let b = swizzle2d(n, n, n, n, 2.0);
    let c = swizzle2d(n, n, 8, 8, 2, axis = 0);
    let d = swizzle2d(arange(0, 8), arange(0, 16), 8, 8, 2);
}
