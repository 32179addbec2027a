#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let (a, b) = split(load(x + at));
    store(y, a + b);
}
