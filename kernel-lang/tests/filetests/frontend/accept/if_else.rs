#[kernel(N = 64)]
fn if_else<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, mode: i32) {
    let offsets = arange(0, N);
    let mut v = load(x + offsets);
    let mut scale = 1.0;
    let mut p = y;
    if mode == 0 {
        v = v * 2.0;
        scale = 3.0;
    } else if mode > 5 {
        p += 4;
        scale += load(x);
    } else {
        let v = 1;
        store(y, v);
    }
    let sign = if n > 3 { 1 } else { -1 };
    let w = if mode < 0 { exp(v) } else { v };
    if n == 0 {
        store(y, 0.0);
    }
    store(p + offsets, w * scale * (sign as f32));
}
