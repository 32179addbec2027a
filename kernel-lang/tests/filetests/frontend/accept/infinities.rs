#[kernel(N = 64)]
fn k<T: Float, const N: usize>(x: Ptr<T>, h: Ptr<bf16>, y: PtrMut<T>, z: PtrMut<bf16>, n: usize) {
    let at = arange(0, N);
    // Infinities and NaN are of every type of floats.
    let v = load(x + at, mask = at < n, other = f32::NEG_INFINITY);
    let w = select(v == -f32::INFINITY, T::NAN, min(v, T::INFINITY));
    store(y + at, w);
    let lowest = full::<bf16>([N], f32::NEG_INFINITY);
    let u = max(load(h + at, mask = at < n, other = f64::NAN), lowest);
    store(z + at, select(u == f32::INFINITY, 0.0, u));
    // A variable keeps the type that the name says.
    let mut largest = f32::NEG_INFINITY;
    for i in 0..n {
        largest = max(largest, load(x + i) as f32);
    }
    store(y, largest as T);
}
