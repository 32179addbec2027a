//! One quotient selects a weight: a run of neighbours has one or two weights, and the last weight is the last element of its tensor.
//! x: whole 9000
//! w: whole 12
//! y: zeros 9000
//! channels: 12, 12, 7, 12, 12, 3
//! pixels: 37, 8, 129, 9, 7, 511
//! grid: 4
fn kernel(x: Ptr<bf16>, w: Ptr<bf16>, y: PtrMut<bf16>, channels: usize, pixels: usize) {
    let n = channels * pixels;
    let start = program_id(0) * n;
    for first in range(0, n, 256) {
        let at = first + arange(0, 256);
        let mask = at < n;
        let weight = load(w + at / pixels, mask = mask) as f32;
        let v = load(x + start + at, mask = mask) as f32;
        store(y + start + at, (v * weight) as bf16, mask = mask);
    }
}

fn reference(x: Ptr<bf16>, w: Ptr<bf16>, y: PtrMut<bf16>, channels: usize, pixels: usize) {
    let start = program_id(0) * channels * pixels;
    for channel in 0..channels {
        for pixel in 0..pixels {
            let at = start + channel * pixels + pixel;
            store(y + at, (load(x + at) as f32 * load(w + channel) as f32) as bf16);
        }
    }
}
