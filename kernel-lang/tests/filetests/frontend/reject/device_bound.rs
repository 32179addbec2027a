#[device]
fn half<T: Float>(x: Value<T>) -> Value<T> {
    x * 0.5
}

#[kernel]
fn k<E: Number>(x: Ptr<E>, y: PtrMut<i32>) {
    store(y, half(load(y)));
    let v = half(load(x));
}
