#[kernel]
fn k(y: PtrMut<f32>) {
    loop {
        store(y, 1.0);
    }
}
