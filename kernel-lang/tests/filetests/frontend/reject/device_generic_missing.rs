#[device]
fn window<const N: usize>(start: usize) -> Value<usize> {
    start + arange(0, N)
}

#[device]
fn nothing<T: Float>() -> T {
    0.0
}

#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    store(y + window(8), 0.0);
    store(y + window::<n>(8), 0.0);
    store(y, nothing());
    store(y, nothing::<8>());
    store(y, nothing::<f32, 8>());
}
