//! Addresses of rows whose length is an argument: they move by a row, by several, or backwards, beside others at a distance, and in nested loops.
//! x: whole 4096
//! y: zeros 4096
//! first: 0, 3, 4, 0, 1
//! rows: 7, 9, 5, 0, 12
//! step: 1, 2, 3, 1, 4
//! columns: 40, 33, 64, 50, 35
//! skip: 1, 5, 64, 2, 0
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, first: i64, rows: i64, step: i64, columns: i64, skip: i64) {
    let out = y + program_id(0) * 2048;
    let at = arange(0, 32);
    let mut total = zeros::<f32>([32]);
    for row in range(first, rows, step) {
        let own = load(x + ((row + 1) * (columns + 2) + 3) + at);
        let next = load(x + ((row + 2) * (columns + 2) + 5) + at);
        total = total * 0.5 + own + next * 2.0;
    }
    for row in range(first, rows, step) {
        let own = load(x + ((row + 1) * (columns + 2) + 3) + at);
        let next = load(x + ((row + 2) * (columns + 2) + 5) + at);
        let falling = load(x + (rows - row) * columns + at);
        for part in range(0, 3) {
            total += load(x + (row * columns + part * skip) + at);
        }
        store(out + (row * columns + 1) + at, own + next * 2.0 + falling * 4.0);
        total += load(out + (row * columns + 1) + at);
    }
    store(out + 1536 + at, total);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, first: i64, rows: i64, step: i64, columns: i64, skip: i64) {
    let out = y + program_id(0) * 2048;
    for at in 0..32 {
        let mut total = 0.0f32;
        for row in range(first, rows, step) {
            let own = load(x + (row + 1) * (columns + 2) + 3 + at);
            let next = load(x + (row + 2) * (columns + 2) + 5 + at);
            total = total * 0.5 + own + next * 2.0;
        }
        for row in range(first, rows, step) {
            let own = load(x + (row + 1) * (columns + 2) + 3 + at);
            let next = load(x + (row + 2) * (columns + 2) + 5 + at);
            let falling = load(x + (rows - row) * columns + at);
            for part in range(0, 3) {
                total += load(x + row * columns + part * skip + at);
            }
            store(out + row * columns + 1 + at, own + next * 2.0 + falling * 4.0);
            total += load(out + row * columns + 1 + at);
        }
        store(out + 1536 + at, total);
    }
}
