#[kernel]
fn k<const N: usize, const M: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    let (even, odd) = split(reshape(v, [N / 2, 2]));
    store(y + arange(0, N), interleave(odd, even));
    let w = v + interleave(odd, even);
    let q = v + load(x + arange(0, M));
}
