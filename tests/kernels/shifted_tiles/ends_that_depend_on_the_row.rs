//! The end of each row depends on the index of the loop over rows.
//! x: whole 4000
//! y: zeros 4000
//! rows: 12, 12, 15, 12
//! n: 250, 249, 256, 251
//! start: 0, 3, 1, 8
//! grid: 4, 8, 4, 8
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, rows: usize, n: usize, start: usize) {
    let column = arange(0, 256);
    for row in range(program_id(0), rows, num_programs(0)) {
        let mask = column < row * 16 + 9;
        let v = load(x + start + row * n + column, mask = mask);
        store(y + start + row * n + column, v, mask = mask);
    }
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, rows: usize, n: usize, start: usize) {
    for row in range(program_id(0), rows, num_programs(0)) {
        for column in 0..min(256, row * 16 + 9) {
            let at = start + row * n + column;
            store(y + at, load(x + at));
        }
    }
}
