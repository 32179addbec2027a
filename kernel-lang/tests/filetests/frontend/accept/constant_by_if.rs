#[kernel(B = [16, 64], MODE = [0, 1, 2])]
fn k<T: Float, const B: usize, const MODE: i32>(x: Ptr<T>, y: PtrMut<f32>, h: PtrMut<T>, n: usize) {
    // An extent, and a bound.
    const H: usize = if B > 16 && MODE != 2 { 16 } else if !(MODE == 1) || B < 8 { B / 2 } else { B };
    static_assert!(B % H == 0);
    // The side that is not taken need not have a value.
    const PARTS: i64 = if MODE > 0 { 4 / MODE as i64 } else { 1 };
    const WIDE: bool = if MODE == 0 { B > 32 } else { false };
    let at = arange(0, H);
    let v = load(x + at) as f32;
    // Of every kind, and with the type of the value that it meets.
    let scale = if MODE == 0 { 1 } else if WIDE { 0.5 } else { 2 };
    store(y + at, v * scale / (scale / 4));
    store(h + at, load(x + at) * (if MODE == 0 { 1.0 } else { 0.25 }));
    let (rows, columns) = match MODE {
        0 => (2, H / 2),
        1 if B == 16 => (4, H / 4),
        _ => (1, H),
    };
    store(y + reshape(at, [rows, columns]) + PARTS, zeros::<f32>([rows, columns]));
    if WIDE && n > 3 {
        store(y, 1.0);
    }
    // What a branch does is done, and its value is a constant all the same.
    let last = if MODE == 1 {
        store(y + n, 2.0);
        H - 1
    } else {
        0
    };
    store(y + arange(last, B), 3.0);
    let typed: f32 = if MODE == 0 { B / 8 } else { 1 };
    const NARROW: u8 = if WIDE { 200u8 } else { 7 };
    store(y + n, typed + NARROW as f32);
}
