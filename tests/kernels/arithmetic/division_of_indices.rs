//! Indices that are divided by an argument, with what is computed from the results: small, negative, zero, and with more than 31 bits.
//! y: zeros 4096
//! n: 7, 1, 512, -3, -1, 0, 4294967303, 2147483648, 9, 4, 3
//! m: 0, 5, 100, 100, 2, 3, 1, 2147483640, -20, 65536, 1073741824
fn kernel(y: PtrMut<i64>, n: usize, m: usize) {
    let lanes = arange(0, 512);
    let at = 2 * lanes;
    store(y + at, lanes / n);
    store(y + 1024 + at, lanes % n);
    store(y + 2048 + at, lanes / n * m % 1000);
    store(y + 3072 + at, (lanes - 100) / n);
}

fn reference(y: PtrMut<i64>, n: usize, m: usize) {
    for i in 0..512 {
        store(y + 2 * i, i / n);
        store(y + 1024 + 2 * i, i % n);
        store(y + 2048 + 2 * i, i / n * m % 1000);
        store(y + 3072 + 2 * i, (i - 100) / n);
    }
}
