#[kernel]
fn k(y: PtrMut<f32>) {
    let t = (1.0, 2.0);
    store(y, t.2);
}
