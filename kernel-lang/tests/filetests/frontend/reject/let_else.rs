#[kernel]
fn k(y: PtrMut<f32>) {
    let a = 1.0 else { return };
    store(y, a);
}
