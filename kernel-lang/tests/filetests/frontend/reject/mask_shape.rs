#[kernel(N = 64, M = 32)]
fn k<const N: usize, const M: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let offsets = arange(0, N);
    store(y + offsets, load(x + offsets, mask = arange(0, M) < n));
}
