//! A mask compares indices behind a start with a limit that wide accesses divide, but the start is no multiple of one.
//! y: zeros 400
//! a: 0, 1, 2, 3, 0, 1, 2, 3, 300, 0
//! s: 1, 1, 1, 1, 2, 2, 2, 2, 3, -2
//! n: 64, 64, 64, 64, 128, 128, 128, 128, 64, 256
fn kernel(y: PtrMut<i32>, a: usize, s: i64, n: i64) {
    let lanes = arange(0, 256);
    store(y + a + lanes, full::<i32>([256], 3), mask = s + lanes < n);
}

fn reference(y: PtrMut<i32>, a: usize, s: i64, n: i64) {
    for i in 0..256 {
        if s + i < n {
            store(y + a + i, 3);
        }
    }
}
