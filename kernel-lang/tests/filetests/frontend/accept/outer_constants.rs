#[kernel(N = 64)]
fn k<T: Float, const N: usize>(x: Ptr<f32>, h: Ptr<T>, y: PtrMut<f32>, z: PtrMut<T>, j: PtrMut<i32>, n: usize) {
    let at = arange(0, N);
    let v = load(x + at, mask = at < LIMIT, other = config::FILL);
    // The value that a constant meets tells its type; from then on it has this type.
    let w = v * SCALE + 1.0 / crate::limits::EPS;
    let scale = SCALE;
    store(y + OFFSET + at, clamp(w, -SCALE, SCALE) + scale);
    // rustc computes what names constants only, with a type of Rust.
    store(z + at, load(h + at) * (2.0 * GAIN as f32) as T);
    if DEBUG && n > 3 || !(LEVEL < 3) {
        store(j + at, full::<i32>([N], LEVEL));
    }
    let mut acc: f64 = START;
    for i in 0..STEPS {
        acc += i as f64;
    }
    store(y, acc as f32);
    // A constant of the body hides one outside, in its block.
    {
        const SCALE: f32 = 3.0;
        store(y + 1, SCALE);
    }
    let state = match n as i32 {
        MODE_FAST => 1,
        Mode::SLOW => 2,
        _ => 3,
    };
    store(j, state as i32);
}
