//! Each row of a tile has a divisor. Some rows are in the range of the short division, others are not.
//! x: any 4096
//! bits: any 4096
//! divisors: any 64
//! y: zeros 16384
fn kernel(x: Ptr<bf16>, bits: Ptr<i32>, divisors: Ptr<f32>, y: PtrMut<f32>) {
    let row = arange(0, 64);
    let at = row[(.., None)] * 64 + arange(0, 64)[(None, ..)];
    let s = load(divisors + row);
    let positive = bitcast::<f32>(bitcast::<i32>(s) & 0x7f_ffff | (row as i32 + 96) << 23);
    let v = load(x + at) as f32;
    let b = load(bits + at);
    let usual = bitcast::<f32>(b & 0x807f_ffffu32 as i32 | (b >> 23 & 63) + 96 << 23);
    store(y + at, v / s[(.., None)]);
    store(y + 4096 + at, v / positive[(.., None)]);
    store(y + 8192 + at, usual / s[(.., None)]);
    store(y + 12288 + at, usual / positive[(.., None)]);
}

fn reference(x: Ptr<bf16>, bits: Ptr<i32>, divisors: Ptr<f32>, y: PtrMut<f32>) {
    for i in 0..4096 {
        let s = load(divisors + i / 64);
        let positive = bitcast::<f32>(bitcast::<i32>(s) & 0x7f_ffff | ((i / 64) as i32 + 96) << 23);
        let v = load(x + i) as f32;
        let b = load(bits + i);
        let usual = bitcast::<f32>(b & 0x807f_ffffu32 as i32 | (b >> 23 & 63) + 96 << 23);
        store(y + i, v / s);
        store(y + 4096 + i, v / positive);
        store(y + 8192 + i, usual / s);
        store(y + 12288 + i, usual / positive);
    }
}
