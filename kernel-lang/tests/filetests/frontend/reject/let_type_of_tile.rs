#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v: f32 = load(x + arange(0, N));
    store(y + arange(0, N), v);
}
