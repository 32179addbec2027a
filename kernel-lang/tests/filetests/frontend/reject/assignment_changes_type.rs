#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    let mut a = 1.0f32;
    a = n;
    store(y, a);
}
