#[kernel]
fn k(y: PtrMut<f32>) {
    let a = 1.0f32;
    a = 2.0;
    store(y, a);
}
