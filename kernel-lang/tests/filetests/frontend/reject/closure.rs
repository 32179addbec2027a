#[kernel]
fn k(y: PtrMut<f32>) {
    let (f, g) = (|a| a + 1.0, 2.0);
    store(y, g);
}
