#[autotune(configs = [Config { BLOCK: 64 }], records = ["a.json", "a.json", tuned, ""])]
#[kernel]
fn k<const BLOCK: usize>(y: PtrMut<f32>) {
    store(y + arange(0, BLOCK), 1.0);
}
