#[device]
fn half(x: Value<f32>) -> Value<f32> {
    x * 0.5
}

#[kernel]
fn k(x: Ptr<bf16>, y: PtrMut<f32>) {
    store(y, half(load(x)));
}
