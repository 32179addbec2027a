#[device]
fn half(x: f32) -> f32 {
    x * 0.5
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, half(load(x + arange(0, 8))));
}
