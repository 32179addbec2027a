//! Sums of 16 bits over the rows of a matrix, whose rows and columns both end within a tile. The last tile may leave the tensor.
//! x: whole 3000
//! y: zeros 128
//! m: 20, 20, 20, 21, 16, 3, 30, 33
//! n: 100, 98, 101, 100, 100, 128, 100, 100
//! grid: 1
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, m: usize, n: usize) {
    let columns = arange(0, 128);
    let mut total = zeros::<f32>([4, 128]);
    for i in range(0, m, 4) {
        let rows = i + arange(0, 4);
        let mask = (rows.col() < m) & (columns.row() < n);
        total += load(x + rows.col() * n + columns.row(), mask = mask) as f32;
    }
    store(y + columns, sum(total, axis = 0), mask = columns < n);
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, m: usize, n: usize) {
    for column in 0..128 {
        if column < n {
            let mut total = 0.0;
            for row in 0..m {
                total += load(x + row * n + column) as f32;
            }
            store(y + column, total);
        }
    }
}
