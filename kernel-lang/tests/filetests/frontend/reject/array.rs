#[kernel]
fn k(y: PtrMut<f32>) {
    let a = [1.0, 2.0];
    store(y, 1.0);
}
