#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    device_assert!(n);
    device_assert!();
    device_assert!(n > 0, n);
    device_assert!(n > 0, "a", "b");
    let v = device_assert!(n > 0);
    store(y, reduce(load(x + arange(0, 8)), 0, |a, b| { device_assert!(a > b); a }));
}
