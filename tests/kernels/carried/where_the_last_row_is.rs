//! The last row is the largest, and its index is the last one that 32 bits hold, or the first one that they do not.
//! x: counting 12800
//! y: zeros 256
//! first: 2147483600, 2147483600, 2147483600, -2147483648, -2147483649
//! n: 47, 48, 49, 50, 50
fn kernel(x: Ptr<i32>, y: PtrMut<i64>, first: i64, n: i64) {
    let column = arange(0, 256);
    let mut best = full::<i32>([256], -1);
    let mut at = full::<i64>([256], 7);
    for row in range(first, first + n) {
        let v = load(x + (row - first) * 256 + column);
        at = select(v > best, row, at);
        best = max(best, v);
    }
    store(y + column, at);
}

fn reference(x: Ptr<i32>, y: PtrMut<i64>, first: i64, n: i64) {
    for column in 0..256 {
        let mut best = -1;
        let mut at = 7i64;
        for row in 0..n {
            let v = load(x + row * 256 + column);
            if v > best {
                best = v;
                at = first + row;
            }
        }
        store(y + column, at);
    }
}
