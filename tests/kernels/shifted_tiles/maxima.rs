//! `other` may be the maximum of a row.
//! x: whole 9000
//! y: zeros 9000
//! m: zeros 40
//! rows: 33, 33, 33
//! n: 251, 253, 255
//! start: 0, 1, 2
//! other: -100, 7, 100
//! grid: 8, 8, 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, m: PtrMut<f32>, rows: usize, n: usize, start: usize, other: i32) {
    let column = arange(0, 256);
    for row in range(program_id(0), rows, num_programs(0)) {
        let v = load(x + start + row * n + column, mask = column < n, other = other as f32);
        let most = max(v);
        store(y + start + row * n + column, select(column < n, v - most, 1.0), mask = column < n);
        store(m + row, most);
    }
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, m: PtrMut<f32>, rows: usize, n: usize, start: usize, other: i32) {
    for row in range(program_id(0), rows, num_programs(0)) {
        let mut most = other as f32;
        for column in 0..n {
            most = max(most, load(x + start + row * n + column));
        }
        for column in 0..n {
            store(y + start + row * n + column, load(x + start + row * n + column) - most);
        }
        store(m + row, most);
    }
}
