#[kernel]
fn k<const B: usize, const STAGES: usize, const K: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut acc = zeros::<f32>([B]);
    for start in range(0, n, B, num_stages = STAGES, unroll = 2 * K) {
        let cols = start + arange(0, B);
        acc += load(x + cols, mask = cols < n, other = 0.0);
    }
    for i in range(0, 4, num_stages = 4) {
        store(y + i, 0.0);
    }
    for i in range(0, 4, unroll = 4) {
        store(y + i, sum(acc));
    }
}
