//! An assumption inside a branch or a loop does not hold after that branch or loop.
//! y: zeros 6
//! c: 0, 1, 0
//! n: 4, 3, 16
//! m: 7, 5, 8
fn kernel(y: PtrMut<i32>, c: usize, n: usize, m: usize) {
    if c == 1 {
        assume(n == 3);
        assume(n < m);
        assume(m % 5 == 0);
        store(y, (n == 3) as i32);
    }
    for i in 0..c {
        assume(n > i + 1);
        store(y + 1, (n > i + 1) as i32);
    }
    store(y + 2, (n == 3) as i32);
    store(y + 3, (n > 3) as i32);
    store(y + 4, (m > n) as i32);
    store(y + 5, (m % 5) as i32);
}

fn reference(y: PtrMut<i32>, c: usize, n: usize, m: usize) {
    store(y, c as i32);
    store(y + 1, c as i32);
    store(y + 2, c as i32);
    store(y + 3, 1 - c as i32);
    store(y + 4, if m - n > 0 { 1i32 } else { 0i32 });
    store(y + 5, (m - m / 5 * 5) as i32);
}
