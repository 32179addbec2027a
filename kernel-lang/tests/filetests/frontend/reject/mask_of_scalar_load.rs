#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    store(y, load(x, mask = arange(0, N) < n));
}
