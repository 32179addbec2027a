//! Conditions that the launch knows and that only other branches use, directly, in a loop, and in both arms of a branch.
//! y: zeros 32
//! a: 1, -1, 0, 4611686018427387904, 3, -7
//! b: 0, 12, 5, 7, 4, 3
//! n: 12, 5, 0, 100, -3, 8
//! grid: 8
fn kernel(y: PtrMut<i64>, a: i64, b: i64, n: i64) {
    let (i, chosen) = (program_id(0), (a * 3 + b) % 7 < n - a * b);
    if i * a + 6 + b < n - a {
        store(y + i, 1);
    } else {
        store(y + i, select(chosen, 2, 3));
        for k in range(0, b) {
            if i + k > 3 {
                store(y + 8 + i, select(chosen, k, -k));
            } else {
                store(y + 16 + i, select(chosen, 5, 6));
            }
        }
        if chosen {
            store(y + 24 + i, 7);
        }
    }
}

fn reference(y: PtrMut<i64>, a: i64, b: i64, n: i64) {
    let i = program_id(0);
    let mut sign = -1;
    if (a * 3 + b) % 7 < n - a * b {
        sign = 1;
    }
    if i * a + 6 + b < n - a {
        store(y + i, 1);
    }
    if i * a + 6 + b >= n - a {
        store(y + i, (5 - sign) / 2);
        for k in range(0, b) {
            if i + k > 3 {
                store(y + 8 + i, k * sign);
            }
            if i + k <= 3 {
                store(y + 16 + i, (11 - sign) / 2);
            }
        }
        if sign == 1 {
            store(y + 24 + i, 7);
        }
    }
}
