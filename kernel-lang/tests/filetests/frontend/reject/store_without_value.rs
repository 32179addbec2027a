#[kernel]
fn k(y: PtrMut<f32>) {
    store(y);
}
