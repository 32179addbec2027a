//! Masks with a lower limit whose index wraps around behind the greatest `i64`, so that its last lanes are below the limit.
//! y: whole 80
//! a: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 0, 0, 40
//! s: 9223372036854775797, 9223372036854775797, 9223372036854775797, 9223372036854775797, 9223372036854775744, 9223372036854775745, 9223372036854775746, 5, 5, -1, -40, -9223372036854775808, 0
//! limit: 0, 0, 0, 0, 1, 1, 1, 4, 5, -1, 0, -9223372036854775807, -9223372036854775808
fn kernel(y: PtrMut<i32>, a: usize, s: i64, limit: i64) {
    let lanes = arange(0, 64);
    store(y + a + lanes, load(y + a + lanes) + 3, mask = s + lanes >= limit);
    if s > limit {
        store(y + a + lanes, load(y + a + lanes) * 5, mask = s + lanes > limit);
    }
}

fn reference(y: PtrMut<i32>, a: usize, s: i64, limit: i64) {
    for i in 0..min(64, 80 - a) {
        if s + i >= limit {
            store(y + a + i, load(y + a + i) + 3);
        }
        if s > limit && s + i > limit {
            store(y + a + i, load(y + a + i) * 5);
        }
    }
}
