//! Rows of bools that are not aligned: most warps have only elements of the row, one has some, and the last has none.
//! x: any 9000
//! y: zeros 4
//! n: 2000, 1993, 1537, 2048, 37, 0
//! first: 0, 1, 7, 3, 0, 0
//! grid: 4
//! warps: 4
fn kernel(x: Ptr<bool>, y: PtrMut<i32>, n: usize, first: usize) {
    let lanes = arange(0, 2048);
    let v = load(x + first + program_id(0) * n + lanes, mask = lanes < n, other = true);
    store(y + program_id(0), sum(v as i32 * (lanes as i32 % 5)));
}

fn reference(x: Ptr<bool>, y: PtrMut<i32>, n: usize, first: usize) {
    let mut sum: i32 = 0;
    for i in 0..2048 {
        let v = if i < n { load(x + first + program_id(0) * n + i) } else { true };
        sum += v as i32 * (i as i32 % 5);
    }
    store(y + program_id(0), sum);
}
