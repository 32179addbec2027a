#[kernel]
fn scans<const N: usize, const SCALE: usize>(x: Ptr<f32>, y: PtrMut<f32>, limit: f32) {
    let at = arange(0, N);
    let v = load(x + at);
    store(y + at, cumsum(v) + v.cumprod(axis = 0, reverse = true));
    store(y + at, cummax(v, axis = 0) - cummin(v));
    let (a, b) = associative_scan((v, v), 0, |(a, x), (b, y)| (a * b, x * b + y), reverse = true);
    store(y + at, a + b);
    let clipped = v.associative_scan(0, |a, b| min(a + b * (SCALE as f32), limit));
    store(y + at, clipped);
    let nothing = associative_scan(v, 0, |_, b| { let c = b; c });
    store(y + at, nothing);
}
