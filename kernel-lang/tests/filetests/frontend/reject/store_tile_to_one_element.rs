#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, load(x + arange(0, N)));
}
