#[kernel]
fn k(y: PtrMut<f32>, mut n: usize) {
    while n {
        n -= 1;
    }
    store(y, 1.0);
}
