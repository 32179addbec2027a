//! A tile of rows and columns, whose flat index is taken apart by arguments: sizes that fit in 32 bits, negative ones, and none.
//! y: zeros 2048
//! columns: 256, 250, 7, 1, 256, 256, 0, -3, 4294967296, 100, 2147483648, 256
//! window: 2, 3, 5, 1, -2, 0, 4, 2, 3, 4294967297, 2, -9223372036854775808
//! grid: 2
fn kernel(y: PtrMut<i64>, columns: usize, window: usize) {
    let (row, column) = (program_id(0) * 4 + arange(0, 4), arange(0, 256));
    let at = row[(.., None)] * columns + column[(None, ..)];
    let line = at / columns;
    let from = line / window * (columns / window) + at % columns / window;
    store(y + row[(.., None)] * 256 + column[(None, ..)], from);
}

fn reference(y: PtrMut<i64>, columns: usize, window: usize) {
    for row in 0..8 {
        for column in 0..256 {
            let at = row * columns + column;
            store(y + row * 256 + column, at / columns / window * (columns / window) + at % columns / window);
        }
    }
}
