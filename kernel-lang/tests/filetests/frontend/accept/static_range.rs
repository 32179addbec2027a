#[kernel(N = [4, 8])]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut sum = zeros::<f32>([N]);
    for i in static_range(0, N, 2) {
        if i == 0 {
            sum += load(x + arange(0, N));
        } else {
            sum += load(x + i * N + arange(0, N)) * i as f32;
        }
        if n == i {
            continue;
        }
        for j in static_range(i, N) {
            static_assert!(j >= i);
            sum += load(x + j);
        }
    }
    let mut width = 1;
    for _ in static_range(0, 3) {
        width *= 2;
        store(y + arange(0, width), full([width], width as f32));
    }
    store(y + arange(0, N), sum);
}
