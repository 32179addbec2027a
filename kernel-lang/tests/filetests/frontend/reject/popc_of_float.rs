#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let a = load(x);
    store(y, popc(a));
}
