#[kernel]
fn k(y: PtrMut<f32>) {
    let (a, b) = (1.0, 2.0, 3.0);
    store(y, a);
}
