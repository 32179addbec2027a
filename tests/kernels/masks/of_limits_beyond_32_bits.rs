//! Positions in a tile fit 32 bits, but the limits that they are compared with do not.
//! y: zeros 3
//! n: 200, -1, -4294967196, 4294967496, -9223372036854775808, 9223372036854775807, 2147483648, -2147483648, 100, 400
fn kernel(y: PtrMut<i32>, n: usize) {
    let at = arange(0, 512);
    let from = arange(100, 612);
    store(y, sum(select(at < n, at as i32, 1000)));
    store(y + 1, sum(select(from >= n, at as i32, 1000)));
    store(y + 2, sum(select(n <= 3 * at, at as i32, 1000)));
}

fn reference(y: PtrMut<i32>, n: usize) {
    let mut a: i32 = 0;
    let mut b: i32 = 0;
    let mut c: i32 = 0;
    for i in 0..512 {
        a += if i < n { i as i32 } else { 1000 };
        b += if 100 + i >= n { i as i32 } else { 1000 };
        c += if n <= 3 * i { i as i32 } else { 1000 };
    }
    store(y, a);
    store(y + 1, b);
    store(y + 2, c);
}
