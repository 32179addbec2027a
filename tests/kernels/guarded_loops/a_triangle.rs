//! Rows that become shorter: neither the first nor the last one ends behind the tensor, but one between them does.
//! x: whole 83
//! y: zeros 64
//! rows: 20, 21, 5, 20
//! n: 3, 3, 3, 5
//! columns: 100, 110, 100, 100
fn kernel(x: Ptr<bf16>, y: PtrMut<f32>, rows: usize, n: usize, columns: usize) {
    let column = arange(0, 64);
    let mut total = zeros::<f32>([64]);
    for row in 0..rows {
        total = total * 0.5 + load(x + row * n + column, mask = column + 5 * row < columns, other = 1.0) as f32;
    }
    store(y + column, total);
}

fn reference(x: Ptr<bf16>, y: PtrMut<f32>, rows: usize, n: usize, columns: usize) {
    for column in 0..64 {
        let mut total = 0.0f32;
        for row in 0..rows {
            total = total * 0.5 + load(x + row * n + column, mask = column + 5 * row < columns, other = 1.0) as f32;
        }
        store(y + column, total);
    }
}
