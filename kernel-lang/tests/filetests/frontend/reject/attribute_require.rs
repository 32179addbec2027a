#[kernel(N = 64, require(wgma, fast, tma, tma, specialised))]
fn k<const N: usize>(y: PtrMut<f32>) {
    store(y + arange(0, N), 1.0);
}
