#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, N);
    store(y + arange(0, 4 * N), cat(load(x + at), load(x + arange(0, 2 * N))));
}
