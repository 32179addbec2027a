//! Quotients by a shared divisor that are only rounded to `bf16`. One of a thread's four is within a few steps of a number halfway between two
//! `bf16`, where each step decides; the other ones are of any size, also subnormal. The divisors are those of `quotients_of_a_shared_divisor`.
//! bits: any 8192
//! y: zeros 32768
//! z: zeros 8192
//! divisor: 1065353216, 1077936128, -1069547520, 1061158912, 1123942400, 1073741823, 1073741821, 1073741819, 1056964609, 0, -2147483648, 2139095040, -8388608, 2143289344, 8388608, 4194304, 1, 2113929216, 2113929217, 2122317824, 2122317825, 2130706432, 2137108966, 226492416, 226492415, 1904214016, 1904214017, 508545212, 1618822406, 1266679808, 1270874112, -1222130260
//! grid: 64
//! warps: 1
fn kernel(bits: Ptr<i32>, y: PtrMut<bf16>, z: PtrMut<f32>, divisor: i32) {
    let s = bitcast::<f32>(divisor);
    let lanes = program_id(0) * 128 + arange(0, 128);
    let b = load(bits + lanes);
    let halfway = (b & 0x807f_0000u32 as i32 | 0x3f80_8000) + (lanes / 4 % 8) as i32 - 4;
    let near = bitcast::<f32>(select(lanes % 4 == 0, halfway, b & 0x807f_0000u32 as i32 | 0x3f80_1000));
    store(y + lanes, (near * s / s) as bf16);
    store(y + 8192 + lanes, (near / s) as bf16);
    // The quotients have the exponents of the least normal numbers, and lower ones.
    let small = bitcast::<f32>(b & 0x81ff_0000u32 as i32 | (select(lanes % 4 == 0, 0x8000, 0x1000) as i32));
    store(y + 16384 + lanes, (small * s / s) as bf16);
    // This quotient is also used as it is.
    let quotient = bitcast::<f32>(b) / s;
    store(y + 24576 + lanes, quotient as bf16);
    store(z + lanes, quotient);
}

fn reference(bits: Ptr<i32>, y: PtrMut<bf16>, z: PtrMut<f32>, divisor: i32) {
    let s = bitcast::<f32>(divisor);
    for lane in 0..128 {
        let i = program_id(0) * 128 + lane;
        let b = load(bits + i);
        let halfway = (b & 0x807f_0000u32 as i32 | 0x3f80_8000) + (i / 4 % 8) as i32 - 4;
        let near = bitcast::<f32>(select(i % 4 == 0, halfway, b & 0x807f_0000u32 as i32 | 0x3f80_1000));
        store(y + i, (near * s / s) as bf16);
        store(y + 8192 + i, (near / s) as bf16);
        let small = bitcast::<f32>(b & 0x81ff_0000u32 as i32 | (select(i % 4 == 0, 0x8000, 0x1000) as i32));
        store(y + 16384 + i, (small * s / s) as bf16);
        let quotient = bitcast::<f32>(b) / s;
        store(y + 24576 + i, quotient as bf16);
        store(z + i, quotient);
    }
}
