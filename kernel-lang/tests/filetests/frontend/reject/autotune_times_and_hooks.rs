#[autotune(configs = [Config { BLOCK: 64 }], key = [n], warmup = 1.5, rep = 0, pre_hook = 3, post_hook = |a, b| {})]
#[kernel]
fn k<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, v: View<f32, 2>, n: usize, scale: f32) {
    store(y + arange(0, BLOCK), scale, mask = arange(0, BLOCK) < n);
}
