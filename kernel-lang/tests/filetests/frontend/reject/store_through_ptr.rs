#[kernel]
fn k(x: Ptr<f32>) {
    store(x, 1.0);
}
