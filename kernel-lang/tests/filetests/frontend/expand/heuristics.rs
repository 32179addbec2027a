#[autotune(
    configs = product(B = [64, 128], num_warps = [4, 8]) if B * num_warps <= 512,
    key = [bucket(n), extent(v, 1)],
    prune = [|config| config.B > v.len(), top_k(2, |config| cdiv(n, config.B) as f64)],
    reset_to_zero = [y],
    rep = 20,
)]
#[kernel(heuristics(EVEN = n.is_multiple_of(B) && extent(v, 0) > 1, num_stages = if EVEN { 4 } else { 2 }))]
fn heuristics<T: Float, const B: usize, const EVEN: bool>(v: View<T, 2>, y: PtrMut<T>, n: usize, a: T) {
    let at = arange(0, B);
    store(y + at, v.load([0, 0], [1, B]).reshape([B]) * a, mask = EVEN | (at < n));
}
