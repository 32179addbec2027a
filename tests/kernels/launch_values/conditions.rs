//! Branches on conditions of program ids and arguments, which hold in all programs, in none, or in some: sums that wrap, remainders, quotients by 0 and
//! by negative numbers, and the order of floats.
//! y: zeros 48
//! a: 1, -1, 0, 4611686018427387904, 3, 9223372036854775807, -7, 1000
//! b: 0, 12, 5, 7, 4, -9223372036854775808, 3, -1000
//! n: 12, 5, 0, 100, -3, 1, 8, 9223372036854775807
//! grid: 6
//! grid_y: 2
fn kernel(y: PtrMut<i64>, a: i64, b: i64, n: i64) {
    let (i, j) = (program_id(0), program_id(1));
    let at = (j * 6 + i) * 4;
    if i * a + j * 6 + b < n - a {
        store(y + at, 1);
    }
    if (i % n) * 3 + j < (a / n) + 2 * b {
        store(y + at + 1, 2);
    } else {
        store(y + at + 1, i - a);
    }
    if max(i * 8 + 7, j) & 15 == min(a, n) % 16 {
        store(y + at + 2, 3);
    }
    if (i * 2 + j) as f32 * 0.5 + 0.25 >= (a - b) as f32 * 0.125 {
        store(y + at + 3, 4);
    } else {
        store(y + at + 3, b);
    }
}

fn reference(y: PtrMut<i64>, a: i64, b: i64, n: i64) {
    let (i, j) = (program_id(0), program_id(1));
    let at = (j * 6 + i) * 4;
    let first = select(i * a + j * 6 + b < n - a, 1, 0);
    store(y + at, first);
    let second = select((i % n) * 3 + j < (a / n) + 2 * b, 2, i - a);
    store(y + at + 1, second);
    store(y + at + 2, select(max(i * 8 + 7, j) & 15 == min(a, n) % 16, 3, 0));
    store(y + at + 3, select((i * 2 + j) as f32 * 0.5 + 0.25 >= (a - b) as f32 * 0.125, 4, b));
}
