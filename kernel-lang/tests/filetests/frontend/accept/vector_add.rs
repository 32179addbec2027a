#[kernel(BLOCK_SIZE = [1024])]
fn vector_add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let a = load(x + offsets, mask = mask);
    let b = load(y + offsets, mask = mask);
    store(out + offsets, a + b, mask = mask);
}
