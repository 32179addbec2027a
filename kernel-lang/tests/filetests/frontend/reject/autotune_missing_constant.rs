#[autotune(configs = [Config { BLOCK: 64, num_warps: 4 }, Config { num_warps: 8 }], key = [n])]
#[kernel]
fn k<const BLOCK: usize>(y: PtrMut<f32>, n: usize) {
    store(y + arange(0, BLOCK), 1.0);
}
