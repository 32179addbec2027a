//! The ops behind a sum take weights, which are shorter than a row in some launches, and rows that do not exist are masked off.
//! x: whole 5000
//! w: whole 600
//! y: zeros 5000
//! rows: 7, 7, 6, 8
//! n: 601, 599, 700, 513
//! grid: 4
fn kernel(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize) {
    let row = program_id(0) * 2 + arange(0, 2);
    let column = arange(0, 1024);
    let mask = (row < rows).col() & (column < n).row();
    let at = (row * n).col() + column.row();
    let v = load(x + at, mask = mask) as f32;
    let weights = load(w + column, mask = column < n) as f32;
    store(y + at, v * weights.row() - sum(v, axis = 1).col(), mask = mask);
}

fn reference(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize) {
    for row in program_id(0) * 2..min(program_id(0) * 2 + 2, rows) {
        let mut total = 0.0f32;
        for column in 0..n {
            total += load(x + row * n + column) as f32;
        }
        for column in 0..n {
            let at = row * n + column;
            store(y + at, load(x + at) as f32 * load(w + column) as f32 - total);
        }
    }
}
