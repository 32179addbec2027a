#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    let a: f32 = n;
    store(y, a);
}
