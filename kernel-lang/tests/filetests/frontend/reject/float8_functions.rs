#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f8e4m3>, y: PtrMut<f8e4m3>) {
    let at = arange(0, N);
    let a = load(x + at);
    store(y + at, exp(a));
    store(y + at, -a);
    store(y + at, fma(a, a, a));
    store(y, sum(a, axis = 0));
    store(y, max(a, axis = 0));
    store(y + at, cumsum(a, axis = 0));
    store(y + at, pow(a, a));
}
