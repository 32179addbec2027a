//! Blocks of rows and columns of matrices behind one another: rows are not aligned, and both ends lie within a tile.
//! x: whole 9000
//! y: zeros 64
//! rows: 0, 1, 16, 17, 37, 48, 33
//! columns: 33, 33, 33, 45, 33, 40, 64
//! grid: 2
//! grid_y: 2
fn kernel(x: Ptr<bf16>, y: PtrMut<f32>, rows: usize, columns: usize) {
    let column = program_id(0) * 32 + arange(0, 32);
    let mut total = zeros::<f32>([16, 32]);
    let mut squares = zeros::<f32>([16, 32]);
    for first in range(0, rows, 16) {
        let row = first + arange(0, 16);
        let mask = (row < rows)[(.., None)] & (column < columns)[(None, ..)];
        let v = load(x + (program_id(1) * rows + row)[(.., None)] * columns + column[(None, ..)], mask = mask) as f32;
        total += v;
        squares += v * v;
    }
    let all = sum(total, axis = 0) - 2.0 * sum(squares, axis = 0);
    store(y + program_id(1) * columns + column, all, mask = column < columns);
}

fn reference(x: Ptr<bf16>, y: PtrMut<f32>, rows: usize, columns: usize) {
    for outer in 0..2 {
        for column in 0..columns {
            let mut total = 0.0f32;
            for row in 0..rows {
                let v = load(x + (outer * rows + row) * columns + column) as f32;
                total += v - 2.0 * v * v;
            }
            store(y + outer * columns + column, total);
        }
    }
}
