//! A loaded mask has one element for each row, or for each column, of a tile. The rows of that tile are loaded by vector accesses.
//! m: whole 64
//! x: any 900
//! y: zeros 900
//! a: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 60
//! b: 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 60
fn kernel(m: Ptr<i32>, x: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    let (i, j) = (arange(0, 16), arange(0, 32));
    let mut rows = 1 == zeros::<i32>([16]);
    let mut columns = 1 == zeros::<i32>([32]);
    if a < 90 {
        rows = load(m + i) > 0;
        columns = load(m + j) > 0;
    }
    if b < 90 {
        let at = i.col() * 32 + j.row();
        store(y + b + at, load(x + a + at, mask = rows.col(), other = 7), mask = columns.row());
    }
}

fn reference(m: Ptr<i32>, x: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    for i in 0..16 {
        for j in 0..32 {
            let v = if load(m + i) > 0 { load(x + a + 32 * i + j) } else { 7 };
            if load(m + j) > 0 {
                store(y + b + 32 * i + j, v);
            }
        }
    }
}
