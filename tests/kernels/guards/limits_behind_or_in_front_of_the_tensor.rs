//! A mask compares the index itself with a limit that is negative, or larger than the tensor.
//! y: whole 300
//! r: 0, 3, 250, -20, 3, 0
//! n: -5, 10, 700, 8, -9223372036854775800, 9223372036854775807
fn kernel(y: PtrMut<i32>, r: i64, n: i64) {
    let (few, many) = (r + arange(0, 64), r + arange(0, 1024));
    store(y + few, load(y + few, mask = few < n) + 3, mask = few < n);
    store(y + many, load(y + many, mask = many < n) * 5, mask = many < n);
}

fn reference(y: PtrMut<i32>, r: i64, n: i64) {
    for i in 0..300 {
        let mut v = load(y + i);
        if i < n && i >= r {
            v = if i < r + 64 { v + 3 } else { v };
            store(y + i, v * 5);
        }
    }
}
