#[autotune(configs = [Config { BLOCK: 64 }], key = [m])]
#[kernel]
fn k<const BLOCK: usize>(y: PtrMut<f32>, n: usize) {
    store(y + arange(0, BLOCK), 1.0);
}
