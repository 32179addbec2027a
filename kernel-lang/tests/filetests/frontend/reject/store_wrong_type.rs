#[kernel(N = 64)]
fn k<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let offsets = arange(0, N);
    let v = load(x + offsets) as f32;
    store(y + offsets, v * sigmoid(v), mask = offsets < 10);
}
