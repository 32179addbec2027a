#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, is_last: bool) {
    let v = load(x + arange(0, N));
    let count = 1 + is_last;
    let signs = (v > 0.0) * 2.0 - 1.0;
    store(y + arange(0, N), v);
}
