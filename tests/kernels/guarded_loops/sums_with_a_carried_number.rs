//! A loop over rows that are not aligned carries a tile and a number; behind it, a reduction of the tile combines with the number.
//! x: whole 2000
//! y: zeros 1
//! rows: 5, 9, 12, 16
//! n: 101, 101, 101, 125
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize) {
    let column = arange(0, 128);
    let mut total = zeros::<f32>([128]);
    let mut last = 0.0f32;
    for row in 0..rows {
        total += load(x + row * n + column, mask = column < n) as f32;
        last = last * -1.0 + 2.0;
    }
    let each = last + 1.0;
    store(y, reduce(total, 0, |a, b| a + b + each));
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, rows: usize, n: usize) {
    let mut last = 0.0f32;
    for row in 0..rows {
        for column in 0..n {
            store(y, load(y) + load(x + row * n + column) as f32);
        }
        last = last * -1.0 + 2.0;
    }
    store(y, load(y) + (last + 1.0) * 127.0);
}
