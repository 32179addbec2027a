#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f8e4m3>, y: PtrMut<f8e4m3>) {
    let at = arange(0, N);
    let a = load(x + at);
    store(y + at, a + a);
    store(y + at, a * 2.0);
    store(y + at, max(a, 0.0));
}
