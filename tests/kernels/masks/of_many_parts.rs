//! A mask that is the conjunction of eighty comparisons, beside the sizes of a matrix.
//! x: counting 1024
//! y: zeros 1024
//! n: 32, 20, 17
//! m: 32, 9, 31
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, n: usize, m: usize) {
    let rows = arange(0, 32).col();
    let columns = arange(0, 32).row();
    let at = rows * n + columns;
    let v = load(x + rows * 32 + columns);
    let mut mask = (rows < m) & (columns < n);
    for k in static_range(0, 80) {
        mask = mask & (v != 7 * k + 5);
    }
    store(y + at, v, mask = mask);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, n: usize, m: usize) {
    for i in 0..m {
        for j in 0..n {
            let v = load(x + i * 32 + j);
            if !(v % 7 == 5 && v < 560) {
                store(y + i * n + j, v);
            }
        }
    }
}
