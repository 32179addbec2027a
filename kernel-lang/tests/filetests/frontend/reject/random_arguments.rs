#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, seed: u64, n: usize) {
    let at = arange(0, 64);
    store(y + at, rand(at));
    store(y + at, rand(seed, load(x + at)));
    store(y + at, rand(seed, at, rounds = 7));
    let (a, _, _, _) = philox(seed, at as u8, 0, 0, 0);
    store(y + at, randn(0.5, at));
}
