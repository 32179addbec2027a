//! A loop over rows that are not aligned carries two tiles. The number of rows is no multiple of any number of iterations that are unrolled.
//! x: whole 9000
//! y: zeros 256
//! best: zeros 256
//! rows: 0, 1, 3, 4, 5, 16, 17, 21, 37, 40, 16, 50, 3
//! n: 201, 201, 201, 201, 203, 201, 201, 201, 201, 201, 208, 201, -7
//! columns: 201, 201, 201, 200, 203, 201, 100, 201, 201, 256, 208, 129, 201
//! grid: 2
fn kernel(x: Ptr<f16>, y: PtrMut<i64>, best: PtrMut<f32>, rows: usize, n: usize, columns: usize) {
    let column = program_id(0) * 128 + arange(0, 128);
    let mask = column < columns;
    let mut largest = full::<f32>([128], -1000.0);
    let mut at = zeros::<i64>([128]);
    for row in 0..rows {
        let v = load(x + row * n + column, mask = mask, other = 3.0) as f32;
        at = select(v > largest, row, at);
        largest = max(largest, v);
    }
    store(y + column, at);
    store(best + column, largest);
}

fn reference(x: Ptr<f16>, y: PtrMut<i64>, best: PtrMut<f32>, rows: usize, n: usize, columns: usize) {
    for column in 0..256 {
        let mut largest = -1000.0f32;
        let mut at = 0i64;
        for row in 0..rows {
            let v = load(x + row * n + column, mask = column < columns, other = 3.0) as f32;
            if v > largest {
                at = row;
                largest = v;
            }
        }
        store(y + column, at);
        store(best + column, largest);
    }
}
