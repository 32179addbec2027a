//! A carried index comes near the ends of `i32` and of `i64`.
//! x: any 4096
//! y: zeros 64
//! lo: 9223372036854775800, -9223372036854775808, 2147483640, -2147483650, 4294967290
//! m: 7, 3, 20, 5, 9
fn kernel(x: Ptr<f32>, y: PtrMut<i64>, lo: usize, m: usize) {
    let c = arange(0, 64); let mut at = zeros::<i64>([64]); for i in lo..lo + m { let v = load(x + (i - lo) * 64 + c); at = select(v > 0.0, i, at); } store(y + c, at);
}

fn reference(x: Ptr<f32>, y: PtrMut<i64>, lo: usize, m: usize) {
    if program_id(0) == 0 { for c in 0..64 { let mut at = 0; for i in lo..lo + m { let v = load(x + (i - lo) * 64 + c); if v > 0.0 { at = i; } } store(y + c, at); } }
}
