#[autotune(
    configs = [
        Config { BLOCK_SIZE: 256, num_warps: 2 },
        Config { BLOCK_SIZE: 1 << 10, num_warps: 8, num_stages: 4 },
    ],
    key = [n],
)]
#[kernel(T = f32)]
fn autotuned<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    store(y + offsets, load(x + offsets, mask = offsets < n), mask = offsets < n);
}
