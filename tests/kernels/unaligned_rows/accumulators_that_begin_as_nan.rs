//! Accumulators begin as NaN, which a maximum replaces by the first number: a masked position must not be one.
//! x: zeros 9000
//! y: zeros 6
//! grid: 3
//! n: 1024, 1024, 1025, 2048
//! start: 0, 1, 1, 3
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, n: usize, start: usize) {
    let row = start + program_id(0) * n;
    let column = arange(0, 256);
    let mut most = full([256], f32::NAN);
    let mut least = full([256], f32::NAN);
    for first in range(0, n, 256) {
        let at = first + column;
        most = max(most, load(x + row + at, mask = at < n, other = f16::NEG_INFINITY) as f32 * f32::INFINITY);
        least = min(least, load(x + row + at, mask = at < n, other = f16::INFINITY) as f32 * f32::INFINITY);
    }
    store(y + program_id(0), max(most));
    store(y + 3 + program_id(0), min(least));
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, n: usize, start: usize) {
    store(y + program_id(0), if n % 256 == 0 { f32::NAN } else { f32::NEG_INFINITY });
    store(y + 3 + program_id(0), if n % 256 == 0 { f32::NAN } else { f32::INFINITY });
}
