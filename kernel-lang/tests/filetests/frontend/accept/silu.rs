/// y = x * sigmoid(x), computed in f32 and rounded once.
#[kernel(BLOCK_SIZE = [1024, 4096])]
fn silu<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let v = load(x + offsets, mask = mask) as f32;
    store(y + offsets, (v * sigmoid(v)) as T, mask = mask);
}
