#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let offsets = arange(0, N);
    let v = load(x + offsets);
    if v > 0.0 {
        store(y + offsets, v);
    }
}
