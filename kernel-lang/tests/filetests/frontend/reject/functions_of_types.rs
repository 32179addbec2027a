#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, n: u32) {
    let v = load(x + arange(0, 64));
    store(y, f32::from(n));
    store(y, f32::from_bits(n));
    store(y, f32::powi(load(x), 2));
    let w: Value<f32> = v;
    store(y, w.into());
    store(y, n.rotate_left(3) as f32);
}
