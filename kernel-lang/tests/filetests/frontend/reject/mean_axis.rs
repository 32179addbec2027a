#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, mean(load(x + arange(0, N)), axis = 1));
}
