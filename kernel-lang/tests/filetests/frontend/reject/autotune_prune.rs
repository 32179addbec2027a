#[autotune(configs = [Config { BLOCK: 64 }], key = [n], prune = BLOCK < n)]
#[kernel]
fn k<const BLOCK: usize>(y: PtrMut<f32>, n: usize) {
    store(y + arange(0, BLOCK), 1.0);
}
