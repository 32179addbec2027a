#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let halves = arange(0, N / 2);
    let v = load(x + halves);
    store(y + arange(0, N), interleave(v, v) + load(x + arange(0, N)));
}
