#[kernel]
fn k(y: PtrMut<f32>) {
    for i in static_range(0, 4) {
        store(y + i, 1.0);
    }
}
