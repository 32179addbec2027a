#[device]
fn inner<T: Number>(x: Value<T>) -> Value<T> {
    x + 1u8
}

#[device]
fn outer<T: Number>(x: Value<T>) -> Value<T> {
    inner(x)
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, outer(load(x)));
}
