#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f8e4m3>, y: PtrMut<f8e4m3>) {
    let at = arange(0, N);
    let a = load(x + at);
    store(y + at, a as f8);
    store(y + at, load(x + at).to::<float8_e5m2>());
}
