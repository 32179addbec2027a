//! Rows and their statistics are loaded ahead, in as many stages as fit shared memory without the statistics.
//! x: any 8192
//! s: any 64
//! y: zeros 128
//! rows: 0, 1, 64
fn kernel(x: Ptr<i32>, s: Ptr<i32>, y: PtrMut<i32>, rows: usize) {
    let column = arange(0, 128);
    let mut total = zeros::<i32>([128]);
    for first in range(0, rows, 64, num_stages = 6) {
        let row = first + arange(0, 64);
        let inside = (row < rows).col() & (column < 128).row();
        let v = load(x + row.col() * 128 + column.row(), mask = inside);
        total += sum(v * load(s + row, mask = row < rows).col(), axis = 0);
    }
    store(y + column, total);
}

fn reference(x: Ptr<i32>, s: Ptr<i32>, y: PtrMut<i32>, rows: usize) {
    for row in 0..rows {
        for column in 0..128 {
            store(y + column, load(y + column) + load(x + row * 128 + column) * load(s + row));
        }
    }
}
