#[kernel(N = 64)]
fn k<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, scale: f32) {
    let offsets = arange(0, N);
    store(y + offsets, load(x + offsets) * scale);
}
