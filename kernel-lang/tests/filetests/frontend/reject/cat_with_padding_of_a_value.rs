#[kernel(N = [32, 24])]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y + arange(0, N), flip(v));
    store(y + arange(0, 2 * N), cat(v, v));
}
