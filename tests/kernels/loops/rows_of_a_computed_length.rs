//! A loop over rows the length of which is four times an argument and one more: where the first row is aligned, the second one is not.
//! x: any 1000
//! y: zeros 512
//! m: 16, 17, 18, 20, 16, 16, 16, 16
//! rows: 5, 2, 8, 1, 4, 4, 4, 3
//! s: 0, 1, 2, 3, 0, 1, 2, 3
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, m: usize, rows: usize, s: usize) {
    let lanes = arange(0, 512);
    let mut last = zeros::<f32>([512]);
    for i in 0..rows {
        last = load(x + s + i * (4 * m + 1) + lanes);
    }
    store(y + lanes, last);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, m: usize, rows: usize, s: usize) {
    for j in 0..512 {
        let at = s + (rows - 1) * (4 * m + 1) + j;
        store(y + j, if at < 1000 { load(x + at) } else { 0.0 });
    }
}
