#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, N)[(.., None)] + arange(0, 4)[(None, ..)];
    store(y + at, flip(load(x + at)));
}
