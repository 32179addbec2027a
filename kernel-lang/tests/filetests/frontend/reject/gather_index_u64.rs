#[kernel]
fn k(x: Ptr<f32>, at: Ptr<u64>, y: PtrMut<f32>) {
    let v = load(x + arange(0, 64));
    store(y + arange(0, 64), gather(v, load(at + arange(0, 64)), 0));
}
