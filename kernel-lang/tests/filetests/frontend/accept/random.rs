#[kernel(N = 64)]
fn random<const N: usize>(y: PtrMut<f32>, z: PtrMut<u32>, w: PtrMut<u64>, seed: u64, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    store(y + at, rand(seed, at) + randn(seed, at as i32));
    let (a, b, c, d) = rand4x(seed, at, n_rounds = 7);
    store(y + N + at, a + b + c + d);
    store(z + at, randint(3, at as u32));
    let (a, b, c, d) = philox(seed, at as u32, 0, 0, 0);
    store(z + N + at, a ^ b ^ c ^ d);
    let (a, _, _, _) = philox(n, bitcast::<u64>(at), 0, 0, 0);
    store(w + at, a);
}
