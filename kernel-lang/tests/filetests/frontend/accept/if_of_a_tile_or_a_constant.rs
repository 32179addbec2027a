#[kernel(N = 64, WEIGHTED = true)]
fn if_of_a_tile_or_a_constant<const N: usize, const WEIGHTED: bool>(w: Ptr<f16>, y: PtrMut<f16>, n: usize) {
    let at = arange(0, N);
    let weight = if WEIGHTED { load(w + at) } else { 1.0 };
    let (a, b) = if n > 3 { (0, at) } else { (at, 7) };
    store(y + at, weight * (a - b) as f16);
}
