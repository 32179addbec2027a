#[kernel]
fn k<const K: usize>(y: PtrMut<f32>, n: usize) {
    for i in range(0, n, 4, num_stages = 0) {
        store(y + i, 1.0);
    }
    for i in range(0, n, num_stages = 17, unroll = 65) {
        store(y + i, 1.0);
    }
    for i in range(0, n, num_stages = n) {
        store(y + i, 1.0);
    }
    for i in range(0, n, unroll = 2.0) {
        store(y + i, 1.0);
    }
    for i in range(0, n, unroll = K, unroll = 2) {
        store(y + i, 1.0);
    }
    for i in range(0, n, loop_unroll_factor = 2) {
        store(y + i, 1.0);
    }
    for i in range(0, n, num_stage = 2, flatten = true) {
        store(y + i, 1.0);
    }
    for i in range(n, num_stages = 2) {
        store(y + i, 1.0);
    }
    for i in static_range(0, 4, unroll = 2) {
        store(y + i, 1.0);
    }
    for i in range(0, n, num_stages = 2) {
        if i == 7 {
            break;
        }
        store(y + i, 1.0);
    }
    for i in range(0, n, unroll = K) {
        if i == 7 {
            return;
        }
        store(y + i, 1.0);
    }
}
