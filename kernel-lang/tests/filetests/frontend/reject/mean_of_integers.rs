#[kernel]
fn k<const N: usize>(x: Ptr<i32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y, mean(v));
}
