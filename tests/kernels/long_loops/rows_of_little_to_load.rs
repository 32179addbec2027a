//! Rows of so few elements that the loop over them is unrolled, for any number of rows: what is carried depends on the order of the rows.
//! x: whole 2560
//! y: zeros 128
//! z: zeros 128
//! rows: 0, 1, 2, 3, 4, 5, 7, 8, 19, 20
//! columns: 128, 128, 128, 128, 127, 128, 128, 120, 128, 125
fn kernel(x: Ptr<f32>, y: PtrMut<i64>, z: PtrMut<f32>, rows: usize, columns: usize) {
    let column = arange(0, 128);
    let mask = column < columns;
    let mut best = full::<f32>([128], f32::NEG_INFINITY);
    let mut best_row = zeros::<i64>([128]);
    let mut digest = zeros::<f32>([128]);
    for row in 0..rows {
        let v = load(x + row * columns + column, mask = mask);
        best_row = select(v > best, row, best_row);
        best = max(best, v);
        digest = digest * 0.5 + v;
    }
    store(y + column, best_row, mask = mask);
    store(z + column, digest, mask = mask);
}

fn reference(x: Ptr<f32>, y: PtrMut<i64>, z: PtrMut<f32>, rows: usize, columns: usize) {
    for column in 0..columns {
        let (mut best, mut best_row, mut digest) = (f32::NEG_INFINITY, 0, 0.0f32);
        for row in 0..rows {
            let v = load(x + row * columns + column);
            if v > best {
                best = v;
                best_row = row;
            }
            digest = digest * 0.5 + v;
        }
        store(y + column, best_row);
        store(z + column, digest);
    }
}
