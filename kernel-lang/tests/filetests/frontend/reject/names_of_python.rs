#[kernel]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N), other = -inf);
    let is_done = True;
    let angle = v * math::pi;
    let low = float("-inf");
    store(y + arange(0, N), v.astype(f32));
}
