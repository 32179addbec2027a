//! A loop over rows that are not aligned begins in front of its tensor, or ends behind it.
//! x: whole 2000
//! y: zeros 128
//! rows: 5, 9, 12, 7, 3, 20
//! n: 101, 101, 101, 101, 101, 101
//! start: 0, -250, -1, 1500, 1999, -3
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize, start: usize) {
    let column = arange(0, 128);
    let mut total = zeros::<f32>([128]);
    for row in 0..rows {
        total = total * 0.5 + load(x + start + row * n + column, mask = column < n) as f32;
    }
    store(y + column, total);
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize, start: usize) {
    for column in 0..n {
        let mut total = 0.0f32;
        for row in 0..rows {
            total = total * 0.5 + load(x + start + row * n + column) as f32;
        }
        store(y + column, total);
    }
}
