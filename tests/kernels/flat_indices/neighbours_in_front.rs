//! Neighbours in front of an element of the same row, and in the row in front of it: the masks compare remainders and quotients, so no index is negative.
//! x: whole 2000
//! y: zeros 2000
//! grid: 4
//! n: 2000, 1999, 700, 2000, 2000, 1536
//! w: 500, 37, 7, 1, 3, 1000
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize, w: usize) {
    let i = program_id(0) * 512 + arange(0, 512);
    let mask = i < n;
    let column = i % w;
    let row = i / w;
    let mut total = load(x + i, mask = mask);
    total += load(x + i - 3, mask = mask & (column >= 3));
    total += load(x + (i - 1), mask = mask & (column + 2 >= 3));
    total += load(x + i - 2 * w, mask = mask & (row >= 2));
    total += load(x + i - w - 1, mask = mask & (row > 0) & (column > 0));
    total += load(x + i - 1, mask = mask & (3 <= 2 + row), other = 1.0);
    store(y + i, total, mask = mask);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize, w: usize) {
    for i in 0..n {
        let column = i % w;
        let row = i / w;
        let mut total = load(x + i);
        if column >= 3 {
            total += load(x + i - 3);
        }
        if column >= 1 {
            total += load(x + i - 1);
        }
        if row >= 2 {
            total += load(x + i - 2 * w);
        }
        if row > 0 && column > 0 {
            total += load(x + i - w - 1);
        }
        total += if row >= 1 { load(x + i - 1) } else { 1.0 };
        store(y + i, total);
    }
}
