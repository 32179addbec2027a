#[device]
fn map<T: Float>(x: Ptr<T>, y: PtrMut<T>, at: Value<usize>, f: impl Fn(Value<f32>) -> Value<f32>) {
    store(y + at, through(load(x + at), f) as T);
}

#[device]
fn through<T: Float>(x: Value<T>, f: impl Fn(Value<f32>) -> Value<f32>) -> Value<f32> {
    let bias = 100.0;
    f(x as f32) + bias
}

#[device]
fn folded(x: Value<f32>, combine: impl Fn(f32, f32) -> f32) -> f32 {
    reduce(x, 0, combine)
}

#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<bf16>, y: PtrMut<bf16>, z: PtrMut<f32>, factor: f32) {
    let bias = 3.0f32;
    map(x, y, arange(0, N), |v| exp(v) * factor + bias);
    store(z, folded(load(z + arange(0, N)), |a, b| max(a, b) + 1.0));
    store(z + 1, through(1.0f32, |v| through(v, |w| w * factor)));
}
