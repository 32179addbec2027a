//! Loads for which the compiler chooses eviction hints: rows that two loops read, and a weight of all programs. Hints change no result.
//! x: whole 9000
//! w: whole 300
//! y: zeros 9000
//! n: 1024, 1000, 300, 1, 0
//! grid: 5
fn kernel(x: Ptr<f32>, w: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let start = program_id(0) * n;
    let mut total = zeros::<f32>([256]);
    for first in range(0, n, 256) {
        let at = first + arange(0, 256);
        total += load(x + start + at, mask = at < n);
    }
    let sum = sum(total);
    for first in range(0, n, 256) {
        let at = first + arange(0, 256);
        let v = load(x + start + at, mask = at < n) + sum;
        store(y + start + at, v + load(w + at % 300, mask = at < n), mask = at < n);
    }
}

fn reference(x: Ptr<f32>, w: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let start = program_id(0) * n;
    let mut sum: f32 = 0.0;
    for i in 0..n {
        sum += load(x + start + i);
    }
    for i in 0..n {
        store(y + start + i, load(x + start + i) + sum + load(w + i % 300));
    }
}
