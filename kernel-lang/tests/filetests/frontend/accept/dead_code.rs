#[kernel]
fn dead_code(y: PtrMut<f32>, n: usize) {
    for i in 0..n {
        continue;
        store(y + i, 1.0);
    }
    store(y, 2.0);
    return;
    store(y, 3.0);
}
