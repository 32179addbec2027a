//! One comparison of positions selects the weights of two outputs. The kernel stores the first output before it selects for the second one.
//! x: whole 9000
//! w: whole 12
//! b: whole 12
//! y: zeros 9000
//! z: zeros 9000
//! n: 9000, 8999
//! pixels: 1001, 999
//! warps: 1
fn kernel(x: Ptr<bf16>, w: Ptr<bf16>, b: Ptr<bf16>, y: PtrMut<bf16>, z: PtrMut<bf16>, n: usize, pixels: usize) {
    for first in range(0, n, 512) {
        let at = first + arange(0, 512);
        let mask = at < n;
        let v = load(x + at, mask = mask) as f32;
        store(y + at, (v * load(w + at / pixels, mask = mask) as f32) as bf16, mask = mask);
        store(z + at, (v + load(b + at / pixels, mask = mask) as f32) as bf16, mask = mask);
    }
}

fn reference(x: Ptr<bf16>, w: Ptr<bf16>, b: Ptr<bf16>, y: PtrMut<bf16>, z: PtrMut<bf16>, n: usize, pixels: usize) {
    for at in 0..n {
        store(y + at, (load(x + at) as f32 * load(w + at / pixels) as f32) as bf16);
        store(z + at, (load(x + at) as f32 + load(b + at / pixels) as f32) as bf16);
    }
}
