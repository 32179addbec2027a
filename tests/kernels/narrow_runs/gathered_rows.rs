//! Rows of other lengths than wide accesses are added in a loop. The last tile of a row has fewer elements than the others.
//! x: whole 4000
//! rows: counting 8
//! y: zeros 512
//! n: 500, 500, 500, 504, 502, 499, 512, 500, 0, 4, 500, 500, 490, 491
//! columns: 500, 496, 498, 500, 502, 499, 512, 256, 0, 3, -4, 600, 488, 488
//! grid: 2
fn kernel(x: Ptr<f16>, rows: Ptr<i64>, y: PtrMut<f32>, n: usize, columns: usize) {
    let column = program_id(0) * 256 + arange(0, 256);
    let mask = column < columns;
    let mut total = zeros::<f32>([256]);
    for i in 0..8 {
        let row = load(rows + i);
        total += load(x + row * n + column, mask = mask, other = 2.0) as f32;
    }
    store(y + column, total, mask = mask);
}

fn reference(x: Ptr<f16>, rows: Ptr<i64>, y: PtrMut<f32>, n: usize, columns: usize) {
    for column in 0..512 {
        if column < columns {
            let mut total = 0.0;
            for i in 0..8 {
                total += load(x + load(rows + i) * n + column, mask = column < columns, other = 2.0) as f32;
            }
            store(y + column, total);
        }
    }
}
