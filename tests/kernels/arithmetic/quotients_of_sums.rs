//! The sum of an index and an argument is divided by another argument: sums that are negative, and sums of more than 31 bits.
//! y: zeros 1024
//! n: 7, 1, 3, 3, 5, 1, 2, 2147483647
//! m: 0, 5, -100, -511, -512, 2147483647, 2147483136, 9000000000
fn kernel(y: PtrMut<i64>, n: usize, m: usize) {
    let lanes = arange(0, 512);
    store(y + 2 * lanes, (lanes + m) / n);
}

fn reference(y: PtrMut<i64>, n: usize, m: usize) {
    for i in 0..512 {
        store(y + 2 * i, (i + m) / n);
    }
}
