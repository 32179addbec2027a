// What a Rust programmer writes without thinking: `loop`, ranges from behind, closures in variables, parts of tuples, constants.
#[kernel]
fn k<const N: usize, const STEPS: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    const SCALE: f32 = 0.5;
    const HALF: usize = 2;
    let at = |start| load(x + start + arange(0, N / HALF));
    let mut sums = (zeros::<f32>([N / HALF]), 0);
    for i in (0..n).rev() {
        sums.0 += at(i) * SCALE;
    }
    for i in (0..n).step_by(3).rev() {
        sums.1 = sums.1 + i;
    }
    for i in static_range(0, STEPS).rev() {
        sums.0 += i as f32;
    }
    for i in (0..n).rev() {
        if load(x + i) == 0.0 {
            break;
        }
        sums.0 += 1.0;
    }
    let mut k = 0;
    loop {
        k += 1;
        if k * k > n {
            break;
        }
    }
    store(y + arange(0, N / HALF), sums.0 + (sums.1 + k) as f32);
}
