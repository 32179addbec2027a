//! Elements that belong to no column are 1 where a sum takes them, of which a shifted tile has as many.
//! x: whole 3000
//! y: zeros 3000
//! rows: 11, 11, 11
//! n: 249, 250, 251
//! grid: 8, 8, 8
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize) {
    let column = arange(0, 256);
    let mut before = full([256], 3.0f32);
    for row in range(program_id(0), rows, num_programs(0)) {
        let v = load(x + row * n + column, mask = column < n, other = 1.0) as f32;
        store(y + row * n + column, v + sum(v + before), mask = (column < n) & (v > 0.0));
        before += v;
    }
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize) {
    let mut before = 256.0f32 * 3.0;
    for row in range(program_id(0), rows, num_programs(0)) {
        let mut total = (256 - n) as f32;
        for column in 0..n {
            total += load(x + row * n + column) as f32;
        }
        for column in 0..n {
            let v = load(x + row * n + column) as f32;
            if v > 0.0 {
                store(y + row * n + column, v + total + before);
            }
        }
        before += total;
    }
}
