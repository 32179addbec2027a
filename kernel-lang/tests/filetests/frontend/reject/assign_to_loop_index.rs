#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    for i in 0..n {
        i += 1;
        store(y + i, 1.0);
    }
}
