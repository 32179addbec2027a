#[autotune(configs = [Config { BLOCK: 64, num_ctas: 32 }, Config { BLOCK: 128, maxnreg: 300 }, Config { BLOCK: 256, num_cta: 2 }], key = [n])]
#[kernel]
fn k<const BLOCK: usize>(y: PtrMut<f32>, n: usize) {
    store(y + arange(0, BLOCK), 1.0);
}
