#[kernel(N = 64, KEEP = true)]
fn k<const N: usize, const KEEP: bool>(x: Ptr<f32>, y: PtrMut<f32>) {
    let rows = load(x + arange(0, N));
    store(y + arange(0, 1), sum(rows, keep_dims = KEEP));
}
