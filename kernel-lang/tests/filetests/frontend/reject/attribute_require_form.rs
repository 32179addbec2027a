#[kernel(N = 64, require = wgmma)]
fn k<const N: usize>(y: PtrMut<f32>) {
    store(y + arange(0, N), 1.0);
}
