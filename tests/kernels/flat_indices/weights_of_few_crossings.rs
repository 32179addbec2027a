//! Few runs of neighbours cross from one channel to the next, and only the warps of such runs select weights. A run crosses at any of its elements.
//! x: whole 26000
//! w: whole 40
//! b: whole 40
//! y: zeros 26000
//! channels: 3, 4, 12, 2, 40
//! pixels: 1001, 999, 257, 2048, 9
//! grid: 3
//! warps: 2
fn kernel(x: Ptr<bf16>, w: Ptr<bf16>, b: Ptr<bf16>, y: PtrMut<bf16>, channels: usize, pixels: usize) {
    let n = channels * pixels;
    let start = program_id(0) * n;
    for first in range(0, n, 1024) {
        let at = first + arange(0, 1024);
        let mask = at < n;
        let weight = load(w + at / pixels, mask = mask) as f32;
        let bias = load(b + at / pixels, mask = mask) as f32;
        let v = load(x + start + at, mask = mask) as f32;
        store(y + start + at, (v * weight + bias) as bf16, mask = mask);
    }
}

fn reference(x: Ptr<bf16>, w: Ptr<bf16>, b: Ptr<bf16>, y: PtrMut<bf16>, channels: usize, pixels: usize) {
    let start = program_id(0) * channels * pixels;
    for channel in 0..channels {
        for pixel in 0..pixels {
            let at = start + channel * pixels + pixel;
            store(y + at, (load(x + at) as f32 * load(w + channel) as f32 + load(b + channel) as f32) as bf16);
        }
    }
}
