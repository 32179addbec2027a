#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<bf16>) {
    let offsets = arange(0, N);
    let a = load(x + offsets);
    let b = load(y + offsets);
    store(y + offsets, (a + b) as bf16);
}
