#[autotune(configs = [Config { BLOCK: 64 }], verify = self::reference)]
#[kernel]
fn k<const BLOCK: usize>(x: View<f32, 2>, y: PtrMut<f32>) {
    store(y + arange(0, BLOCK), sum(x.load([0, 0], [8, BLOCK]), axis = 0));
}
