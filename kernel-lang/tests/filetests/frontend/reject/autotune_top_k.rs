#[autotune(configs = [Config { BLOCK: 64 }], key = [n], prune = [top_k(0, |c| 1.0), top_k(4), 7])]
#[kernel]
fn k<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, v: View<f32, 2>, n: usize, scale: f32) {
    store(y + arange(0, BLOCK), scale, mask = arange(0, BLOCK) < n);
}
