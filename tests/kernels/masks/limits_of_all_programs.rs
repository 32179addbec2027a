//! Limits of 64 bits that all programs share are clamped at launch: negative ones, ones beyond 32 bits, and ones that are computed from others.
//! x: whole 300
//! y: zeros 3600
//! n: 0, 1, 100, 256, 4294967297, -1, -4294967295, 9223372036854775807, -9223372036854775808, 100, 4294967296, -4
//! other: 3, 0, 9223372036854775807, -5, 1, 300, -9223372036854775808, 255, 7, 4, -8, 4294967296
//! narrow: 0, 4294967295, 2147483648, 2147483647, 5, 256, 255, 1, 4294967040, 4294967292, 2147483648, 8
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize, other: usize, narrow: u32) {
    let row = program_id(0);
    let column = arange(0, 256);
    let at = row * 1800 + column;
    let v = load(x + column, mask = column < n, other = 9.0);
    store(y + at, v, mask = column >= other);
    store(y + at + 300, v, mask = column != n);
    store(y + at + 600, v, mask = n - 100 > column);
    store(y + at + 900, v, mask = column <= n / 2);
    store(y + at + 1200, v, mask = column < narrow as usize);
    store(y + at + 1500, v, mask = column + 3000000000 < n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize, other: usize, narrow: u32) {
    for row in 0..2 {
        for j in 0..256 {
            let v = if j < n { load(x + j) } else { 9.0 };
            let at = row * 1800 + j;
            if j >= other {
                store(y + at, v);
            }
            if j != n {
                store(y + at + 300, v);
            }
            if n - 100 > j {
                store(y + at + 600, v);
            }
            if j <= n / 2 {
                store(y + at + 900, v);
            }
            if j < narrow as usize {
                store(y + at + 1200, v);
            }
            if j + 3000000000 < n {
                store(y + at + 1500, v);
            }
        }
    }
}
