#[device]
fn scaled(x: Value<f32>) -> Value<f32> {
    x * crate::SCALE
}

#[kernel]
fn k<T: Float>(y: PtrMut<f32>, t: PtrMut<T>) {
    store(y, scaled(crate::SCALE));
    let open = config::OPEN;
    store(t, config::FILL);
    store(y + config::STEP, 1.0);
    store(y, config::STEP);
    store(y, -open);
}
