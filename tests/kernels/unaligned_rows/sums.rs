//! Rows of any length begin at any address. Some begin in front of their tensor or end behind it: only elements in bounds count.
//! x: whole 2100
//! y: zeros 2100
//! n: 101, 104, 256, 255, 101, 101, 101, 101, 2, 0
//! start: 0, 0, 0, 1, -1, -250, 1999, 2099, -3, 7
//! grid: 8
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, n: usize, start: usize) {
    let row = program_id(0);
    let column = arange(0, 256);
    let at = start + row * n + column;
    let v = load(x + at, mask = column < n) as f32;
    store(y + at, v - sum(v), mask = column < n);
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, n: usize, start: usize) {
    let row = program_id(0);
    let mut total = 0.0f32;
    for column in 0..n {
        total += load(x + start + row * n + column) as f32;
    }
    for column in 0..n {
        let at = start + row * n + column;
        store(y + at, load(x + at) as f32 - total);
    }
}
