//! Masks that begin and end within rows, at columns that move with the loop.
//! x: whole 2000
//! y: zeros 128
//! rows: 0, 3, 9, 18
//! n: 101, 101, 101, 110
//! first: 0, 20, 90, -7
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize, first: usize) {
    let column = arange(0, 128);
    let mut total = zeros::<f32>([128]);
    for row in 0..rows {
        let mask = (column < n) & (column + 2 * row >= first) & (column + row * n > 30);
        total = total * 0.5 + load(x + row * n + column, mask = mask) as f32;
    }
    store(y + column, total);
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize, first: usize) {
    for column in 0..n {
        let mut total = 0.0f32;
        for row in 0..rows {
            let mask = (column + 2 * row >= first) & (column + row * n > 30);
            total = total * 0.5 + load(x + row * n + column, mask = mask) as f32;
        }
        store(y + column, total);
    }
}
