#[kernel(B = 32, N = 6)]
fn k<T: Number, const B: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<T>, s: f32) {
    const HALF: f32 = 1 / 2;
    let lanes = arange(0, B);
    let v = load(x + lanes);
    let third = -(1 / 3);
    let mut w = 0.5;
    w = 2 + 7 / 2;
    store(y + lanes, v * (1 / 2));
    store(y + lanes, third + v);
    store(y + lanes, v * w + s * (2 * (3 / 4) + 1));
    store(y + lanes, select(v > 0.0, v, 1 / 2));
    store(y + lanes, full::<f32>([B], 5 / 2));
    store(y + lanes, load(x + lanes, mask = lanes < 7, other = 1 / 8));
    store(z + lanes, load(z + lanes) * (1 / 2));
    if 1 / 2 < 0.25 {
        store(y + lanes, max(v, 3 / 2));
    }
}
