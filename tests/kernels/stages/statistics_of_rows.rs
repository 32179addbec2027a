//! Rows, and one number for each of them, are loaded ahead; some rows are masked. One tensor of numbers has 16 bits.
//! x: any 6000
//! s: any 47
//! h: any 47
//! w: any 512
//! y: zeros 512
//! rows: 0, 1, 11, 30, 47
//! columns: 100, 127, 128
fn kernel(x: Ptr<i32>, s: Ptr<i32>, h: Ptr<i16>, w: Ptr<i32>, y: PtrMut<i32>, rows: usize, columns: usize) {
    let column = arange(0, 128);
    let weight = load(w + column, mask = column < columns);
    let mut total = zeros::<i32>([4, 128]);
    for first in range(0, rows, 4, num_stages = 3) {
        let row = first + arange(0, 4);
        let inside = (row < rows).col() & (column < columns).row();
        let v = load(x + row.col() * columns + column.row(), mask = inside);
        let scale = load(s + row, mask = row < rows);
        let shift = load(h + row, mask = row < rows) as i32;
        total += (v * scale.col() + shift.col()) * weight.row();
    }
    let lanes = arange(0, 4).col() * 128 + column.row();
    store(y + lanes, total);
}

fn reference(x: Ptr<i32>, s: Ptr<i32>, h: Ptr<i16>, w: Ptr<i32>, y: PtrMut<i32>, rows: usize, columns: usize) {
    for row in 0..rows {
        for column in 0..columns {
            let at = row % 4 * 128 + column;
            let shifted = load(x + row * columns + column) * load(s + row) + load(h + row) as i32;
            store(y + at, load(y + at) + shifted * load(w + column));
        }
    }
}
