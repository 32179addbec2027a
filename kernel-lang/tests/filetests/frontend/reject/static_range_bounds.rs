#[kernel]
fn k<const N: usize>(y: PtrMut<f32>, n: usize) {
    for i in static_range(0, n) {
        store(y + i, 1.0);
    }
    for i in static_range(0, N, 0) {
        store(y + i, 1.0);
    }
    for i in static_range(0, 1 << 20) {
        store(y + i, 1.0);
    }
    for i in static_range(0, N) {
        if n > i {
            break;
        }
    }
    for i in static_range(0, 4, num_stages = 2) {
        store(y + i, 1.0);
    }
    let r = static_range(0, 4);
}
