//! Rows that are not aligned, of which a mask keeps the elements between two ends: some warps have only such elements, some none, and two have an end.
//! x: any 9000
//! y: zeros 9000
//! n: 2000, 1993, 1537, 2048, 37, 0
//! low: 300, 0, 1000, 1, 30, 5
//! first: 0, 1, 7, 3, 0, 0
//! grid: 4
//! warps: 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize, low: usize, first: usize) {
    let lanes = arange(0, 2048);
    let is_kept = (lanes >= low) & (lanes < n);
    let at = first + program_id(0) * n + lanes;
    let v = load(x + at, mask = is_kept, other = -3.0);
    store(y + at, v * max(v), mask = is_kept);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize, low: usize, first: usize) {
    let mut most: f32 = -3.0;
    let row = first + program_id(0) * n;
    for i in 0..2048 {
        if (i >= low) & (i < n) {
            most = max(most, load(x + row + i));
        }
    }
    for i in 0..2048 {
        if (i >= low) & (i < n) {
            store(y + row + i, load(x + row + i) * most);
        }
    }
}
