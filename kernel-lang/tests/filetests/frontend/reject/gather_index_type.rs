#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, 64));
    store(y + arange(0, 64), gather(v, v, 0));
}
