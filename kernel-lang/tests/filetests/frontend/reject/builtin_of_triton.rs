#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x);
    store(y, maximum(v, 0.0));
}
