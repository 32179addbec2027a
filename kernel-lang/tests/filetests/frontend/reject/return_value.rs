#[kernel]
fn k(x: Ptr<f32>) {
    return load(x);
}
