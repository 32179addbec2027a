#[kernel(N = 64)]
fn for_loops<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, m: i32) {
    let mut sum = zeros::<f32>([N]);
    let mut total = 0.0;
    let mut count = 0;
    let mut p = x;
    for k in range(0, n, N) {
        let offsets = k + arange(0, N);
        sum += load(x + offsets, mask = offsets < n);
        total += load(p);
        p += N;
        count += 1;
    }
    for i in 0..m {
        total = total + i as f32;
        for _ in (i..10).step_by(3) {
            count = count + i;
        }
    }
    for i in 0u8..4 {
        store(y + i, total);
    }
    store(y + count + arange(0, N), sum + total);
}
