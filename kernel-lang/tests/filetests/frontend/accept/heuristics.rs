#[kernel(BLOCK = [64, 2048], heuristics(EVEN = n % BLOCK == 0, num_warps = if BLOCK >= 2048 { 8 } else { 4 }, STEP = if EVEN { 4 } else { 1 }))]
fn heuristics<const BLOCK: usize, const EVEN: bool, const STEP: i32>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    if EVEN {
        store(y + at, load(x + at) * STEP as f32);
    } else {
        store(y + at, load(x + at, mask = at < n), mask = at < n);
    }
}
