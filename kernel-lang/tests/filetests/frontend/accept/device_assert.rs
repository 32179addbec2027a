#[device]
fn checked_root(x: Value<f32>) -> Value<f32> {
    device_assert!(x >= 0.0, "a negative number has no root");
    sqrt(x)
}

#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    device_assert!(n > 0);
    device_assert!(true);
    store(y + arange(0, N), checked_root(load(x + arange(0, N))));
}
