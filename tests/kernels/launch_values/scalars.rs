//! Scalars that depend on no program id: of integers of 32 and 64 bits, of floats, and infinities from zeros of both signs.
//! Both branches use some of them.
//! y: zeros 24
//! z: zeros 24
//! a: 1, -1, 0, 7, 123456789012, -9223372036854775808
//! b: 3, 0, -1, 2, 97, -1
//! c: 5, -2147483648, 2147483647, 0, 31, -1
//! grid: 3
fn kernel(y: PtrMut<i64>, z: PtrMut<f32>, a: i64, b: i64, c: i32) {
    let at = program_id(0) * 8;
    let quotient = (a * 3 + 1) / b + a % (b - 1);
    let scale = (a as f32 * 0.75 + 2.0) / (b as f32 - 0.5);
    let narrow = (c * c - 7) / (c + 1) ^ (c >> 3);
    if program_id(0) == 1 {
        store(y + at, quotient);
        store(y + at + 1, narrow as i64);
        store(z + at, sqrt(abs(scale) + 1.0));
    } else {
        store(y + at + 2, quotient + program_id(0));
        store(z + at + 1, floor(scale * 3.0) + program_id(0) as f32);
    }
    store(y + at + 3, num_programs(0) * (a - b) * (a + b));
    store(y + at + 4, (quotient as i32 * narrow) as i64);
    store(z + at + 2, scale);
    store(z + at + 3, 1.0 / (0.0 / (b as f32 + 0.5)));
    store(z + at + 4, 1.0 / (-0.0 / (b as f32 + 0.5)));
}
