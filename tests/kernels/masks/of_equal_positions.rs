//! An element is found by its index, which begins at a number that is known at run time only.
//! y: zeros 3
//! start: 0, 7, -300, 9223372036854775807, -9223372036854775808, 4294967296
//! n: 0, 7, 8, 511, 512, -1, -300, 211, -9223372036854775808, 9223372036854775807, 4294967303
fn kernel(y: PtrMut<i32>, start: i64, n: i64) {
    let lanes = arange(0, 512);
    let at = start + lanes;
    store(y, sum(select(at == n, lanes as i32 + 1, 0)));
    store(y + 1, sum(select(n != at, 1i32, 0)));
    store(y + 2, sum(select(start + 2 * lanes == n, lanes as i32 + 1, 0)));
}

fn reference(y: PtrMut<i32>, start: i64, n: i64) {
    let mut a: i32 = 0;
    let mut b: i32 = 0;
    let mut c: i32 = 0;
    for i in 0..512 {
        a += if start + i as i64 == n { i as i32 + 1 } else { 0 };
        b += if start + i as i64 != n { 1i32 } else { 0 };
        c += if start + 2 * i as i64 == n { i as i32 + 1 } else { 0 };
    }
    store(y, a);
    store(y + 1, b);
    store(y + 2, c);
}
