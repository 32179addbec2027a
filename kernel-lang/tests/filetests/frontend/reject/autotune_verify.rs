#[autotune(configs = [Config { BLOCK: 64 }], verify = |x| x, verify(cpu, other, rtol = -1, rtol = 1.0, rtol = 2, atol = 1))]
#[kernel]
fn k<const BLOCK: usize>(y: PtrMut<f32>) {
    store(y + arange(0, BLOCK), 1.0);
}
