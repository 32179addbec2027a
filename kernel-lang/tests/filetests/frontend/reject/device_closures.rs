#[device]
fn apply(x: Value<f32>, f: impl Fn(Value<f32>) -> Value<f32>) -> Value<f32> {
    f(x)
}

#[device]
fn wrong(x: Value<f32>, f: impl Fn(Value<f32>) -> Value<f32>) -> Value<f32> {
    f(x, x) + f(1 > 0) + f
}

#[kernel]
fn k(y: PtrMut<f32>) {
    let mut count = 0.0;
    store(y, apply(1.0, |a, b| a));
    store(y, apply(1.0, 2.0));
    store(y, apply(|a| a, |a| a));
    store(y, apply(1.0, |a| a > 1.0));
    store(y, apply(1.0, |a| { count += 1.0; a }));
    store(y, apply(1.0, |a| a + missing));
    store(y, wrong(1.0, |a| a));
}
