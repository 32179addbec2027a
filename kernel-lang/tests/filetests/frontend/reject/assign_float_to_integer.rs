#[kernel]
fn k(y: PtrMut<f32>) {
    let mut total = 0;
    total = 1.5;
    store(y, total);
}
