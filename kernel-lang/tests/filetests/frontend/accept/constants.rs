#[kernel(N = [64, 128], WIDE = true)]
fn constants<const N: usize, const M: i32, const WIDE: bool>(x: Ptr<f32>, y: PtrMut<f32>, i: PtrMut<i32>, n: usize) {
    let half = N / 2;
    let mut quarter = half;
    quarter /= 2;
    let offsets = arange(quarter, quarter + N);
    let v = load(x + offsets, mask = offsets < n);
    static_assert!(N >= 64 && N % 64 == 0, "N is a multiple of 64");
    static_assert!(half < 1024);
    store(y + offsets, v * N + 1.0 / 3.0);
    store(y + offsets, v * f32::EPSILON + std::f32::consts::PI, mask = WIDE);
    store(i, M + cdiv(N, 3) - min(N, 32) + max(N, M));
    store(i + 1, i32::MAX);
    store(y + N, f32::NEG_INFINITY);
    let k: i32 = N;
    store(i + 2, k << 1);
    store(i + 3, -M);
}
