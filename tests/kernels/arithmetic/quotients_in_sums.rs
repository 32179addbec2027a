//! Quotients and remainders of indices to which an argument is added: sums of 31 bits and more.
//! y: zeros 2048
//! n: 7, 1, 512, 2147483647, 9, -3, 4294967303
//! m: 2147483647, 2147483640, 2147483136, 2147483647, -20, 100, 1
fn kernel(y: PtrMut<i64>, n: usize, m: usize) {
    let lanes = arange(0, 512);
    store(y + 2 * lanes, lanes / n + m);
    store(y + 1024 + 2 * lanes, lanes % n + m);
}

fn reference(y: PtrMut<i64>, n: usize, m: usize) {
    for i in 0..512 {
        store(y + 2 * i, i / n + m);
        store(y + 1024 + 2 * i, i % n + m);
    }
}
