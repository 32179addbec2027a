#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, 24));
    store(y + arange(0, 48), cat(v, v));
}
