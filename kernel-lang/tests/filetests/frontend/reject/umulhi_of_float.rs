#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, umulhi(load(x), 5u32));
}
