#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let (v, i) = max(load(x + arange(0, N)), axis = 0, return_indices = true);
    store(y, v);
}
