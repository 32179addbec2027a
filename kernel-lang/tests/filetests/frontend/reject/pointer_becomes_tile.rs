#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut p = x;
    p += arange(0, N);
    store(y, 1.0);
}
