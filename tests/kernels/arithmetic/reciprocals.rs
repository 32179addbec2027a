//! Quotients of one, of dividends that differ and of one that all share.
//! bits: any 1024
//! y: zeros 2048
//! divisor: 1077936128, -1077936128, 0, -2147483648, 1, 4194304, 2139095040, 2143289344, 1073741823, 2130706433
fn kernel(bits: Ptr<i32>, y: PtrMut<f32>, divisor: i32) {
    let lanes = arange(0, 1024);
    let s = bitcast::<f32>(divisor);
    store(y + lanes, 1.0 / bitcast::<f32>(load(bits + lanes)));
    store(y + 1024 + lanes, select(lanes % 2 == 0, 1.0 / s, -1.0));
}

fn reference(bits: Ptr<i32>, y: PtrMut<f32>, divisor: i32) {
    let s = bitcast::<f32>(divisor);
    for i in 0..1024 {
        store(y + i, 1.0 / bitcast::<f32>(load(bits + i)));
        store(y + 1024 + i, select(i % 2 == 0, 1.0 / s, -1.0));
    }
}
