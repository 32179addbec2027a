#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y + arange(0, N), v.dot_scaled(v));
}
