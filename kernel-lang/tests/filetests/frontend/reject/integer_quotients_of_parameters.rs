#[kernel(B = 32, N = 6)]
fn k<T: Number, const B: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<T>) {
    const MEAN: f32 = 1 / B;
    let lanes = arange(0, B);
    let v = load(x + lanes);
    store(y + lanes, v * (1 / N));
    store(y + lanes, v * 0.5 * (B / 2) + (B / N) as f32);
    store(z + lanes, load(z + lanes) * (N / 4));
}
