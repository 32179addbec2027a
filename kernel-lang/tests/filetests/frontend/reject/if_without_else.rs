#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    let a = if n > 0 { 1.0f32 };
    store(y, a);
}
