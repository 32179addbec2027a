#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, var(load(x + arange(0, N)), ddof = 1));
}
