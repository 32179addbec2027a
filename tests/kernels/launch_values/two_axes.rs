//! Tiles of a matrix: no tile is ragged, or the last ones of the rows, of the columns, or of both, or more programs than tiles run.
//! x: any 12288
//! y: zeros 12288
//! rows: 64, 63, 64, 61, 50, 64, 48, 0
//! columns: 192, 192, 190, 185, 100, 184, 128, 192
//! grid: 3
//! grid_y: 4
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, rows: usize, columns: usize) {
    let row = program_id(1) * 16 + arange(0, 16);
    let column = program_id(0) * 64 + arange(0, 64);
    let at = row.col() * columns + column.row();
    let mask = (row < rows).col() & (column < columns).row();
    store(y + at, load(x + at, mask = mask) + program_id(1) as f16, mask = mask);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, rows: usize, columns: usize) {
    for r in 0..16 {
        for c in 0..64 {
            let (row, column) = (program_id(1) * 16 + r, program_id(0) * 64 + c);
            if row < rows && column < columns {
                let at = row * columns + column;
                store(y + at, load(x + at) + program_id(1) as f16);
            }
        }
    }
}
