//! A loop over rows that are not aligned gathers a tile that is summed up and stored.
//! x: whole 2000
//! y: zeros 128
//! z: zeros 1
//! rows: 5, 9, 12, 16
//! n: 101, 101, 101, 125
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, z: PtrMut<f32>, rows: usize, n: usize) {
    let column = arange(0, 128);
    let mut total = zeros::<f32>([128]);
    for row in 0..rows {
        total += load(x + row * n + column, mask = column < n) as f32;
    }
    store(z, sum(total));
    store(y + column, total);
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, z: PtrMut<f32>, rows: usize, n: usize) {
    for column in 0..n {
        let mut total = 0.0f32;
        for row in 0..rows {
            total += load(x + row * n + column) as f32;
        }
        store(y + column, total);
        store(z, load(z) + total);
    }
}
