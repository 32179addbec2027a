#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    store(y, n as flaot);
}
