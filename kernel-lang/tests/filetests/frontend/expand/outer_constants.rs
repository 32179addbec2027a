#[kernel(N = 64)]
fn outer_constants<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, N);
    let unused = config::UNUSED;
    store(y + at, load(x + at, other = f32::NAN) * SCALE + -config::EPS, mask = at < LIMIT);
}
