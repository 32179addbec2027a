#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<bf16>, y: PtrMut<bf16>, zero: f32, n: usize) {
    let offsets = arange(0, N);
    store(y + offsets, load(x + offsets, mask = offsets < n, other = zero));
}
