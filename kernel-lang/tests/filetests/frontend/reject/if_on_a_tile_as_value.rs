#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let offsets = arange(0, N);
    let v = load(x + offsets);
    let mut scale = 1.0f32;
    let relu = if v > 0.0 {
        scale = 2.0f32;
        v
    } else {
        0.0
    };
    if v < 0.0 { relu } else { v };
    store(y + offsets, relu * scale);
}
