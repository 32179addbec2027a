#[autotune(configs = [Config { BLOCK: 64 }], verify = cpu)]
#[kernel(unchecked)]
fn k<const BLOCK: usize>(list: Ptr<u64>, y: PtrMut<f32>) {
    let x = load(list) as Ptr<f32>;
    store(y + arange(0, BLOCK), load(x + arange(0, BLOCK)));
}
