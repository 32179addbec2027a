#[autotune(configs = [Config { BLOCK: 64, T: f32 }], key = [n])]
#[kernel]
fn k<T: Float, const BLOCK: usize>(y: PtrMut<T>, n: usize) {
    store(y + arange(0, BLOCK), 1.0);
}
