//! A mask compares indices behind a start with limits: each may be near an end of `i64`, so that a sum or a difference wraps around.
//! x: any 700
//! y: zeros 700
//! r: 0, 3, 100, 100, -3, 9223372036854775800, 5, -9223372036854775808, 9223372036854775800
//! m: 9, 12, -9223372036854775800, -5, 9, 9, 100, -9223372036854775801, -9223372036854775803
//! low: 0, 5, -9223372036854775808, 3, -1, 0, 9, 0, -9223372036854775808
//! s: 33, 41, 33, 33, 33, 33, 35, 33, 35
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, r: i64, m: i64, low: i64, s: usize) {
    let (i, j) = (arange(0, 16), arange(0, 32));
    let at = i.col() * s + j.row();
    let rows = r + i;
    store(y + at, load(x + at, mask = (rows < m).col(), other = 9), mask = (rows >= low).col() & (j < 30).row());
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, r: i64, m: i64, low: i64, s: usize) {
    for i in 0..16 {
        for j in 0..30 {
            let row = r + i;
            if row >= low {
                store(y + i * s + j, if row < m { load(x + i * s + j) } else { 9 });
            }
        }
    }
}
