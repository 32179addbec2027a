#[device]
fn twice<T: Float>(x: Value<T>, f: impl Fn(Value<T>) -> Value<T>) -> Value<T> {
    let again = |v| f(f(v));
    again(x)
}

#[kernel(N = 64)]
fn k<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<f32>, n: usize, scale: f32) {
    let at = |row, column| load(x + row * n + column, mask = column < n) as f32;
    let columns = arange(0, N);
    let scale_at_first = |v| v * scale;
    // Hidden from what stands in front of it.
    let scale = 2.0f32;
    let v = scale_at_first(at(0, columns)) + at(1, columns) * scale;
    let (low, high) = (at(2, 0), at(2, 1));
    let between = |v| {
        let top = min(v, high);
        max(top, low)
    };
    store(y + columns, twice(between(v), between));
    let larger = |a, b| max(a, b);
    store(y + N, reduce(v, 0, larger));
    let both = |(a, i), (b, j)| (max(a, b), select(b > a, j, i));
    let (_, index) = reduce((v, columns), 0, both);
    store(y + N + 1, index as f32);
    let put = |i, v| store(y + 2 * N + i, v);
    put(columns, v);
    put(N, high);
    for k in 0..4 {
        let shifted = |v| v + k as f32;
        store(y + N + 2 + k, shifted(low));
    }
}
