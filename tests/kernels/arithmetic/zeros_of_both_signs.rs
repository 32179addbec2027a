//! Constants that are equal as numbers, but not as bits.
//! x: any 64
//! y: zeros 192
fn kernel(x: Ptr<f32>, y: PtrMut<f32>) {
    let lanes = arange(0, 64);
    let is_small = load(x + lanes) < 1.0;
    store(y + lanes, select(is_small, 0.0, 1.0));
    store(y + 64 + lanes, select(is_small, -0.0, 1.0));
    store(y + 128 + lanes, full::<f32>([64], -0.0));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>) {
    for i in 0..64 {
        let is_small = load(x + i) < 1.0;
        let sign = bitcast::<f32>(0x80000000u32);
        store(y + i, if is_small { 0.0 } else { 1.0 });
        store(y + 64 + i, if is_small { sign } else { 1.0 });
        store(y + 128 + i, sign);
    }
}
