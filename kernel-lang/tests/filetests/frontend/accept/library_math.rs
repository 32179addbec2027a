#[kernel(N = 64)]
fn library_math<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, h: Ptr<bf16>, n: usize) {
    let at = arange(0, N);
    let v = load(x + at);
    let half = load(h + at);
    store(y + at, log1p(v) + v.expm1() + half.asinh() as f32, mask = isfinite(v) & (ffs(at) < n));
}
