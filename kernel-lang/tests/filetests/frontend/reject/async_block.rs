#[kernel]
fn k(y: PtrMut<f32>) {
    let f = async { 1.0 };
    store(y, 1.0);
}
