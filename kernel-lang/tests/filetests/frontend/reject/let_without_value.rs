#[kernel]
fn k(y: PtrMut<f32>) {
    let a;
    a = 1.0;
    store(y, a);
}
