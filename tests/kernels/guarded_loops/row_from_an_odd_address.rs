//! A row that begins between two wide accesses is summed in steps: only its start is not aligned.
//! x: whole 3000
//! y: zeros 1
//! n: 0, 1, 255, 256, 257, 2000, 2049
//! start: 1, 3, 1, 0, 2, 7, 5
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize, start: usize) {
    let mut total = zeros::<f32>([256]);
    for i in range(0, n, 256) {
        let at = i + arange(0, 256);
        total += load(x + start + at, mask = at < n);
    }
    store(y, sum(total));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize, start: usize) {
    let mut total = 0.0f32;
    for i in 0..n {
        total += load(x + start + i);
    }
    store(y, total);
}
