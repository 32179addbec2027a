//! A comparison that is the same for all elements of a thread, beside one that is not, in both orders; and two of one position.
//! x: any 3000
//! y: zeros 7000
//! first: 0, 1, 3, -1, 2
//! rows: 3, 2, 9, 6, -4
//! from: 0, 7, 127, 300, -1
//! n: 127, 123, 128, 100, 0
//! grid: 2
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, first: usize, rows: usize, from: usize, n: usize) {
    let row = program_id(0) * 4 + arange(0, 4);
    let column = arange(0, 128);
    let (is_row, is_late) = ((row < rows).col(), (row >= first).col());
    let (is_column, is_behind) = ((column < n).row(), (column > from).row());
    let at = (row * 257).col() + column.row();
    store(y + at, load(x + at), mask = is_row & is_column);
    store(y + at + 2100, load(x + at + 1), mask = is_behind & is_row);
    store(y + at + 4200, load(x + at + 2), mask = (column < n).row() & (column < from).row() & is_late);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, first: usize, rows: usize, from: usize, n: usize) {
    for row in program_id(0) * 4..program_id(0) * 4 + 4 {
        for column in 0..128 {
            let at = row * 257 + column;
            if row < rows && column < n {
                store(y + at, load(x + at));
            }
            if row < rows && column > from {
                store(y + at + 2100, load(x + at + 1));
            }
            if row >= first && column < n && column < from {
                store(y + at + 4200, load(x + at + 2));
            }
        }
    }
}
