#[autotune(configs = product([64, 128]), key = [n])]
#[kernel]
fn k<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, v: View<f32, 2>, n: usize, scale: f32) {
    store(y + arange(0, BLOCK), scale, mask = arange(0, BLOCK) < n);
}
