//! The end of a mask moves so far that its distance in the tensor is a multiple of 2^64: the tile of the first iteration leaves the tensor.
//! x: whole 64
//! y: zeros 64
//! n: 17592186044417, 35184372088834
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let p = arange(0, 64);
    let mut total = zeros::<f32>([64]);
    for i in range(0, 2, 1) {
        total += load(x + 1048576 * (i + p), mask = p < n - 17592186044417 * i);
    }
    store(y + p, total);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    for p in 0..64 {
        let mut total = 0.0f32;
        for i in 0..2 {
            total += if p < n - 17592186044417 * i { load(x + 1048576 * (i + p)) } else { 0.0 };
        }
        store(y + p, total);
    }
}
