//! The elements depend on their columns, so they cannot shift.
//! x: whole 3000
//! y: zeros 3000
//! z: zeros 3000
//! rows: 11
//! n: 249
//! grid: 8
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, z: PtrMut<f32>, rows: usize, n: usize) {
    let column = arange(0, 256);
    for row in range(program_id(0), rows, num_programs(0)) {
        let v = load(x + row * n + column, mask = column < n) as f32;
        let odd = select(column % 2 == 1, v, 0.0);
        store(y + row * n + column, sum(odd) + column as f32, mask = column < n);
        store(z + row * n + column, cumsum(v), mask = column < n);
    }
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, z: PtrMut<f32>, rows: usize, n: usize) {
    for row in range(program_id(0), rows, num_programs(0)) {
        let mut odd = 0.0f32;
        let mut all = 0.0f32;
        for column in 0..n {
            let v = load(x + row * n + column) as f32;
            odd += if column % 2 == 1 { v } else { 0.0 };
            all += v;
            store(z + row * n + column, all);
        }
        for column in 0..n {
            store(y + row * n + column, odd + column as f32);
        }
    }
}
