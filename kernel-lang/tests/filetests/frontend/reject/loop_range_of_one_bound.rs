#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    for i in range(n) {
        store(y + i, 0.0);
    }
    for i in static_range(4) {
        store(y + i, 1.0);
    }
    for i in static_range() {
        store(y + i, 1.0);
    }
}
