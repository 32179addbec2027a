#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut sum = 0.0;
    for i in range(0, n, N) {
        sum += load(x + i + arange(0, N));
    }
    store(y, sum);
}
