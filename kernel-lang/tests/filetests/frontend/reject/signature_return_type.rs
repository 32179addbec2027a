#[kernel]
fn k(x: Ptr<f32>) -> f32 {
    load(x)
}
