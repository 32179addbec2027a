//! Accumulators begin as -0.0, and so does no masked position: 0.0 would change the sign of the sum.
//! x: zeros 9000
//! y: zeros 3
//! grid: 3
//! n: 1024, 1024, 1025, 2048
//! start: 0, 1, 1, 3
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, n: usize, start: usize) {
    let row = start + program_id(0) * n;
    let column = arange(0, 256);
    let mut total = full([256], -0.0f32);
    for first in range(0, n, 256) {
        let at = first + column;
        total += -(load(x + row + at, mask = at < n, other = -0.0) as f32);
    }
    store(y + program_id(0), 1.0 / sum(total));
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, n: usize, start: usize) {
    store(y + program_id(0), if n % 256 == 0 { f32::NEG_INFINITY } else { f32::INFINITY });
}
