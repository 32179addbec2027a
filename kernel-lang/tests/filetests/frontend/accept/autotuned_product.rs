#[autotune(
    configs = [
        product(BLOCK_M = [16, 32], BLOCK_N = 64, num_warps = [2, 4]) if BLOCK_M * num_warps <= 64 && BLOCK_N.is_power_of_two(),
        Config { BLOCK_M: 128, BLOCK_N: 8, num_warps: 8, maxnreg: 64 },
        product(BLOCK_M = 8, BLOCK_N = 8),
    ],
    key = [bucket(m), bucket(n, 512), scale, extent(x, 1), bucket(extent(x, 0))],
    prune = [|config| config.BLOCK_N > 2 * n, top_k(3, |config| (config.BLOCK_M * m) as f64)],
    restore_value = [y],
    reset_to_zero = total,
    warmup = 2,
    rep = 50,
    pre_hook = |config| println!("{config:?}"),
    post_hook = |_| {},
)]
#[kernel]
fn autotuned_product<const BLOCK_M: usize, const BLOCK_N: usize>(
    x: View<f32, 2>, y: PtrMut<f32>, total: PtrMut<f32>, m: usize, n: usize, scale: f32,
) {
    let v = x.load([program_id(0) * BLOCK_M, 0], [BLOCK_M, BLOCK_N]) * scale;
    let rows = program_id(0) * BLOCK_M + arange(0, BLOCK_M);
    store(y + rows, sum(v, axis = 1), mask = rows < m);
    atomic_add(total, sum(v) * (n as f32));
}
