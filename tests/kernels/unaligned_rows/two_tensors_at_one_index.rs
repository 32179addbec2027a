//! The ops behind a sum take a second tensor, at the indices of the first. One of the tensors may end earlier.
//! x: whole 2100
//! z: whole 1900
//! y: zeros 2100
//! n: 513, 512, 1023, 300, 700
//! start: 0, 0, 0, -1, 3
//! grid: 3
fn kernel(x: Ptr<f32>, z: Ptr<f32>, y: PtrMut<f32>, n: usize, start: usize) {
    let row = program_id(0);
    let column = arange(0, 1024);
    let at = start + row * n + column;
    let v = load(x + at, mask = column < n);
    let w = load(z + at, mask = column < n);
    store(y + at, v - w * sum(v), mask = column < n);
}

fn reference(x: Ptr<f32>, z: Ptr<f32>, y: PtrMut<f32>, n: usize, start: usize) {
    let row = program_id(0);
    let mut total = 0.0f32;
    for column in 0..n {
        total += load(x + start + row * n + column);
    }
    for column in 0..n {
        let at = start + row * n + column;
        store(y + at, load(x + at) - load(z + at) * total);
    }
}
