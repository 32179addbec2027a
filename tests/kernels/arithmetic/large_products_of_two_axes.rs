//! As `sums_of_large_products`, in a tile of two axes.
//! y: zeros 1024
//! a: 1073741313, 0, 5, 1000000000
//! n: 1, 1, 3, 7
//! m: 1073741824, 100, 1073741824, 2000000000
fn kernel(y: PtrMut<i64>, a: usize, n: usize, m: usize) {
    let lanes = arange(0, 4)[(.., None)] * 128 + arange(0, 128)[(None, ..)];
    let once = (lanes + a) / n * m;
    let twice = once + once;
    let four = twice + twice;
    let eight = four + four;
    store(y + 2 * lanes, eight + eight);
}

fn reference(y: PtrMut<i64>, a: usize, n: usize, m: usize) {
    for i in 0..512 {
        store(y + 2 * i, (i + a) / n * m * 16);
    }
}
