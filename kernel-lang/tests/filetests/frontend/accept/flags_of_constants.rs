#[kernel(BACK = true)]
fn flags_of_constants<const N: usize, const BACK: bool>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, N);
    let a = load(x + at, volatile = BACK, evict = if N > 32 { "evict_last" } else { "evict_normal" });
    let b = cumsum(a, reverse = !BACK);
    let (c, _) = associative_scan((b, a), 0, |p, q| (p.0 + q.0, p.1 * q.1), reverse = BACK);
    let d = sort(c, descending = BACK);
    store(y + at, d + max(d, axis = 0, keep_dims = true, propagate_nan = BACK));
}
