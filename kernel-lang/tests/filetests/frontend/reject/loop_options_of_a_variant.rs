#[kernel(S = [3, 0], K = [1, 100])]
fn k<const S: usize, const K: usize>(y: PtrMut<f32>, n: usize) {
    for i in range(0, n, 4, num_stages = S, unroll = K) {
        store(y + i + arange(0, 4), 1.0);
    }
}
