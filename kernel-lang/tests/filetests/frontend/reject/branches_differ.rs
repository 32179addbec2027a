#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    let a = if n > 0 { 1.0f32 } else { 2i32 };
    store(y, a);
}
