//! Rows begin at even indices if their stride is even. A stride may also be negative, or zero.
//! x: any 4096
//! y: zeros 4096
//! start: 0, 0, 1, 2048, 2047, 7
//! stride: 256, 129, 128, -256, -255, 0
//! columns: 128, 64, 100, 128, 100, 128
//! grid: 8
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, start: i64, stride: i64, columns: usize) {
    let (row, j) = (program_id(0), arange(0, 128));
    let at = start + row * stride + 2 * j;
    let (low, high) = (load(x + at, mask = j < columns), load(x + at + 1, mask = j < columns));
    store(y + 256 * row + 2 * j, high, mask = j < columns);
    store(y + 256 * row + 2 * j + 1, low, mask = j < columns);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, start: i64, stride: i64, columns: usize) {
    for row in 0..8 {
        for j in 0..columns {
            let at = start + row * stride + 2 * j;
            store(y + 256 * row + 2 * j, load(x + at + 1));
            store(y + 256 * row + 2 * j + 1, load(x + at));
        }
    }
}
