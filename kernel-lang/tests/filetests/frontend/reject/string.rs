#[kernel]
fn k(y: PtrMut<f32>) {
    let s = "text";
    store(y, 1.0);
}
