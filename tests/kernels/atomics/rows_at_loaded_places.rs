//! Rows are added to rows whose indices are loaded, over the flat index: neighbours have neighbouring indices but for the ends of rows, and several
//! rows are added to one.
//! x: whole 4096
//! at: counting 64
//! y: zeros 1024
//! columns: 64, 61, 4, 1
//! grid: 4
fn kernel(x: Ptr<f32>, at: Ptr<i64>, y: PtrMut<f32>, columns: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < 64 * columns;
    let row = load(at + o / columns, mask = mask) % 13;
    atomic_add(y + row * columns + o % columns, load(x + o, mask = mask), mask = mask);
}

fn reference(x: Ptr<f32>, at: Ptr<i64>, y: PtrMut<f32>, columns: usize) {
    // One program, because the sums of several would race.
    for p in 0..64 * columns * (program_id(0) == 0) as usize {
        let to = load(at + p / columns) % 13 * columns + p % columns;
        store(y + to, load(y + to) + load(x + p));
    }
}
