#[autotune(configs = [Config { BLOCK: 64 }], key = [n], restore_value = [x, z, n, y, y, 3])]
#[kernel]
fn k<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, v: View<f32, 2>, n: usize, scale: f32) {
    store(y + arange(0, BLOCK), scale, mask = arange(0, BLOCK) < n);
}
