#[kernel]
fn k(y: PtrMut<f32>) {
    let f = |a| a + 1.0;
    store(y, f(1.0));
}
