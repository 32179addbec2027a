#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, N)[(.., None)];
    store(y + arange(0, N), squeeze(load(x + at)));
}
