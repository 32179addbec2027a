//! Two quotients select weights for one result: a warp may have a run with two weights of one kind, and none with two of the other.
//! x: whole 9000
//! w: whole 12
//! b: whole 40
//! y: zeros 9000
//! n: 9000, 8999, 4097
//! pixels: 1001, 999, 3000
//! steps: 257, 4096, 1025
//! warps: 1
fn kernel(x: Ptr<bf16>, w: Ptr<bf16>, b: Ptr<bf16>, y: PtrMut<bf16>, n: usize, pixels: usize, steps: usize) {
    for first in range(0, n, 512) {
        let at = first + arange(0, 512);
        let mask = at < n;
        let weight = load(w + at / pixels, mask = mask) as f32;
        let bias = load(b + at / steps, mask = mask) as f32;
        let v = load(x + at, mask = mask) as f32;
        store(y + at, (v * weight + bias) as bf16, mask = mask);
    }
}

fn reference(x: Ptr<bf16>, w: Ptr<bf16>, b: Ptr<bf16>, y: PtrMut<bf16>, n: usize, pixels: usize, steps: usize) {
    for at in 0..n {
        store(y + at, (load(x + at) as f32 * load(w + at / pixels) as f32 + load(b + at / steps) as f32) as bf16);
    }
}
