//! An assumption bounds a number, and the kernel compares the number with that bound. Only some of these comparisons are known.
//! y: zeros 8
//! n: 5, 6
//! m: 9, 8
fn kernel(y: PtrMut<i32>, n: usize, m: usize) {
    assume(n >= 5);
    assume(m <= 9);
    store(y, (n > 5) as i32);
    store(y + 1, (n == 5) as i32);
    store(y + 2, (n >= 5) as i32);
    store(y + 3, (n > 4) as i32);
    store(y + 4, (m < 9) as i32);
    store(y + 5, (m != 9) as i32);
    store(y + 6, (9 >= m) as i32);
    store(y + 7, (6 > n) as i32);
}

fn reference(y: PtrMut<i32>, n: usize, m: usize) {
    store(y, (n - 5) as i32);
    store(y + 1, (6 - n) as i32);
    store(y + 2, 1);
    store(y + 3, 1);
    store(y + 4, (9 - m) as i32);
    store(y + 5, (9 - m) as i32);
    store(y + 6, 1);
    store(y + 7, (6 - n) as i32);
}
