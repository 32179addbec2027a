//! A loop updates its input in place, so an iteration that runs twice changes the result.
//! x: whole 4200
//! y: zeros 8
//! n: 512, 500, 501, 104, 40, 7, 0
//! grid: 8
fn kernel(x: PtrMut<f32>, y: PtrMut<f32>, n: usize) {
    let row = program_id(0);
    let column = arange(0, 128);
    let mut total = zeros::<f32>([128]);
    for start in range(0, n, 128) {
        let at = start + column;
        let v = load(x + row * n + at, mask = at < n);
        store(x + row * n + at, v * 2.0 + 1.0, mask = at < n);
        total += v;
    }
    store(y + row, sum(total));
}

fn reference(x: PtrMut<f32>, y: PtrMut<f32>, n: usize) {
    let row = program_id(0);
    let mut total = 0.0f32;
    for at in 0..n {
        let v = load(x + row * n + at);
        store(x + row * n + at, v * 2.0 + 1.0);
        total += v;
    }
    store(y + row, total);
}
