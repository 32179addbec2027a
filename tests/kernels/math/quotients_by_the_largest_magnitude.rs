//! Rows are divided by a scale from their largest magnitude, which may be zero, tiny, infinite or NaN.
//! x: any 4096
//! y: zeros 4096
//! z: zeros 4096
//! k: 127, 1, -3, 0
//! grid: 8
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, k: i32) {
    let at = program_id(0) * 512 + arange(0, 512);
    let v = load(x + at);
    let largest = max(abs(v));
    store(y + at, v / (largest / 127.0));
    store(z + at, v / (max(largest, 1e-8) * k as f32));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, k: i32) {
    let mut largest = 0.0f32;
    for i in 0..512 {
        largest = max(largest, abs(load(x + program_id(0) * 512 + i)));
    }
    for i in 0..512 {
        let at = program_id(0) * 512 + i;
        store(y + at, load(x + at) / (largest / 127.0));
        store(z + at, load(x + at) / (max(largest, 1e-8) * k as f32));
    }
}
