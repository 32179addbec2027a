#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let f = sigmoid;
    store(y, load(x));
}
