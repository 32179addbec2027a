//! A sum over column numbers includes the columns after the end of the row.
//! x: whole 3000
//! y: zeros 3000
//! rows: 11, 11
//! n: 249, 250
//! grid: 8, 8
fn kernel(x: Ptr<i64>, y: PtrMut<i64>, rows: usize, n: usize) {
    let column = arange(0, 256);
    for row in range(program_id(0), rows, num_programs(0)) {
        let v = load(x + row * n + column, mask = column < n);
        store(y + row * n + column, v + sum(v + column as i64), mask = column < n);
    }
}

fn reference(x: Ptr<i64>, y: PtrMut<i64>, rows: usize, n: usize) {
    for row in range(program_id(0), rows, num_programs(0)) {
        let mut total = 0i64;
        for column in 0..256 {
            if column < n {
                total += load(x + row * n + column);
            }
            total += column as i64;
        }
        for column in 0..n {
            store(y + row * n + column, load(x + row * n + column) + total);
        }
    }
}
