#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y, max(v, axis = 0) + v.min());
}
