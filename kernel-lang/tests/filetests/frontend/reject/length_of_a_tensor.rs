#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let offsets = arange(0, N);
    store(y + offsets, load(x + offsets, mask = offsets < x.len()));
}
