#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = arange(0, 64);
    let inside = at < n;
    let v = load(x + at, mask = inside);
    store(y + at, v, mask = at < n & inside);
    store(y + at, v, mask = inside & v > 0.0);
}
