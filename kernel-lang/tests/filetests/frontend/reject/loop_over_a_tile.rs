#[kernel(N = 64)]
fn k<const N: usize>(y: PtrMut<f32>) {
    for i in arange(0, N) {
        store(y + i, 1.0);
    }
}
