#[kernel(N = 64)]
fn half_arithmetic<const N: usize>(x: Ptr<f16>, z: Ptr<bf16>, y: PtrMut<f16>, w: PtrMut<bf16>) {
    let offsets = arange(0, N);
    let a = load(x + offsets);
    let b = load(z + offsets);
    store(y + offsets, a * a + 0.5 - a / 3.0 + exp(a));
    store(w + offsets, -b * 2.0 + (a as f32 * b as f32) as bf16);
}
