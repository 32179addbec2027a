#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let mut v = load(x + arange(0, N));
    while v > 1.0 {
        v *= 0.5;
    }
    store(y + arange(0, N), v);
}
