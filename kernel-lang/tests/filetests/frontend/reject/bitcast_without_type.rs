#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<u32>) {
    store(y, bitcast(load(x)));
}
