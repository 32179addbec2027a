//! Masks compare sums that wrap at both ends of `i64`.
//! x: any 1024
//! y: zeros 1024
//! z: zeros 1024
//! s: 9223372036854775807, 9223372036854775300, -9223372036854775808, 0
//! n: 1024, 9223372036854775807, -9223372036854775808, 100
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, s: usize, n: usize) {
    let o = arange(0, 1024); let q = s + o; store(y + o, load(x + o, mask = q < n)); store(z + o, load(x + o), mask = (q > n) | (2 * q <= n));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, s: usize, n: usize) {
    if program_id(0) == 0 { for o in 0..1024 { let q = s + o; store(y + o, load(x + o, mask = q < n)); store(z + o, load(x + o), mask = (q > n) | (2 * q <= n)); } }
}
