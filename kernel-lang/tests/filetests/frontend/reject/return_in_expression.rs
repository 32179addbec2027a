#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    let a = 1.0 + if n > 0 { 2.0 } else { return };
    store(y, a);
}
