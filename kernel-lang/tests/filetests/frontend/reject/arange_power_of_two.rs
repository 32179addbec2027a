#[kernel]
fn k(y: PtrMut<f32>) {
    store(y + arange(0, 100), 1.0);
}
