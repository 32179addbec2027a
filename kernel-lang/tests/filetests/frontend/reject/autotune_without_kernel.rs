#[autotune(configs = [Config { N: 64 }], key = [n])]
fn k<const N: usize>(y: PtrMut<f32>, n: usize) {
    store(y + arange(0, N), 1.0);
}
