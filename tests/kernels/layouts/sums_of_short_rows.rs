//! Sums of rows of 64 and of 32 elements, of which several warps hold parts of a sector: some are masked, some rounded, some added to what is stored.
//! One CTA has them, or two share them.
//! x: whole 8192
//! y: zeros 64
//! z: zeros 128
//! w: whole 64
//! n: 64, 33, 1, 0, 64, 33, 1, 0
//! ctas: 1, 1, 1, 1, 2, 2, 2, 2
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f16>, w: PtrMut<f32>, n: usize) {
    let at = program_id(0) * 2048 + arange(0, 2048);
    let v = load(x + at);
    let row = program_id(0) * 32 + arange(0, 32);
    let total = sum(reshape(v, [32, 64]), axis = 1);
    store(y + row, total, mask = row < n);
    store(w + row, load(w + row) + total);
    let short = program_id(0) * 64 + arange(0, 64);
    store(z + short, sum(reshape(v, [64, 32]), axis = 1) as f16, mask = short < 2 * n);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f16>, w: PtrMut<f32>, n: usize) {
    for i in 0..64 {
        let half = program_id(0) * 64 + i;
        let mut total: f32 = 0.0;
        for j in 0..32 {
            total += load(x + half * 32 + j);
        }
        if half < 2 * n {
            store(z + half, total as f16);
        }
        let row = program_id(0) * 32 + i / 2;
        if i % 2 == 0 {
            for j in 0..32 {
                total += load(x + (half + 1) * 32 + j);
            }
            if row < n {
                store(y + row, total);
            }
            store(w + row, load(w + row) + total);
        }
    }
}
