#[kernel(N = 64)]
fn assumptions<I: Int, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, stride: I) {
    assume(n > 0);
    let stride = multiple_of(stride, 16);
    let at = arange(0, N) * stride.multiple_of(N) as i64;
    assume(at < n);
    if stride % 8 == 0 {
        store(y + at, load(x + at));
    }
}
