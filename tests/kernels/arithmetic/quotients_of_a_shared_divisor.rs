//! A divisor that all elements share: every quotient is correctly rounded, with dividends and divisors in every range and about its ends.
//! bits: any 2048
//! halves: any 2048
//! y: zeros 10240
//! divisor: 1065353216, 1077936128, -1069547520, 1061158912, 1123942400, 1073741823, 1073741821, 1073741819, 1056964609, 0, -2147483648, 2139095040, -8388608, 2143289344, 8388608, 4194304, 1, 2113929216, 2113929217, 2122317824, 2122317825, 2130706432, 2137108966, 226492416, 226492415, 1904214016, 1904214017, 508545212, 1618822406, 1266679808, 1270874112, -1222130260
fn kernel(bits: Ptr<i32>, halves: Ptr<f16>, y: PtrMut<f32>, divisor: i32) {
    let lanes = arange(0, 2048);
    let s = bitcast::<f32>(divisor);
    let b = load(bits + lanes);
    let usual = bitcast::<f32>(b & 0x807f_ffffu32 as i32 | (b >> 23 & 63) + 96 << 23);
    store(y + lanes, bitcast::<f32>(b) / s);
    store(y + 2048 + lanes, usual / s);
    store(y + 4096 + lanes, select(b % 4 == 0, select(b < 0, -0.0, 0.0), usual) / s);
    // All dividends of a thread are about one power of two.
    let part = (lanes % 512 / 16) as i32;
    let near = bitcast::<f32>(b & 0x8000_0003u32 as i32 | ((24 + part * part / 5) << 23));
    store(y + 6144 + lanes, near / s);
    store(y + 8192 + lanes, load(halves + lanes) as f32 / s);
}

fn reference(bits: Ptr<i32>, halves: Ptr<f16>, y: PtrMut<f32>, divisor: i32) {
    let s = bitcast::<f32>(divisor);
    for i in 0..2048 {
        let b = load(bits + i);
        let usual = bitcast::<f32>(b & 0x807f_ffffu32 as i32 | (b >> 23 & 63) + 96 << 23);
        store(y + i, bitcast::<f32>(b) / s);
        store(y + 2048 + i, usual / s);
        store(y + 4096 + i, select(b % 4 == 0, select(b < 0, -0.0, 0.0), usual) / s);
        let part = (i % 512 / 16) as i32;
        let near = bitcast::<f32>(b & 0x8000_0003u32 as i32 | ((24 + part * part / 5) << 23));
        store(y + 6144 + i, near / s);
        store(y + 8192 + i, load(halves + i) as f32 / s);
    }
}
