//! The masks of the rows and of the columns of a block end at loaded numbers. What is computed from the block has one value behind them, unless it is computed
//! from a block with another mask, too.
//! x: whole 5000
//! ends: counting 64
//! y: zeros 1024
//! z: zeros 1024
//! at: 0, 1, 7, 15, 32, 40
//! s: 32, 33, 40, 35, 64, 33
//! t: 2, 1, 3, 5, 4, 7
fn kernel(x: Ptr<bf16>, ends: Ptr<i64>, y: PtrMut<f32>, z: PtrMut<f32>, at: usize, s: usize, t: f32) {
    let (i, j) = (arange(0, 32), arange(0, 32));
    let rows = (i < load(ends + at)).col();
    let offsets = x + i.col() * s + j.row();
    let v = load(offsets, mask = rows & (j <= load(ends + at / 2 + 3)).row(), other = 0.5) as f32;
    let u = load(offsets, mask = rows, other = 2.0) as f32;
    let w = v * t;
    store(y + i.col() * 32 + j.row(), (w * w - v) * (v + 2.0) - (w + 3.0) * abs(v - 1.0) + max(w, v));
    store(z + i.col() * 32 + j.row(), (u - v) * t + (u + 3.0) * (v - 7.0) - (u * v + t) * (v - u) + w);
}

fn reference(x: Ptr<bf16>, ends: Ptr<i64>, y: PtrMut<f32>, z: PtrMut<f32>, at: usize, s: usize, t: f32) {
    for i in 0..32 {
        for j in 0..32 {
            let has_row = i < load(ends + at);
            let v = if has_row && j <= load(ends + at / 2 + 3) { load(x + i * s + j) as f32 } else { 0.5 };
            let u = if has_row { load(x + i * s + j) as f32 } else { 2.0 };
            let w = v * t;
            store(y + i * 32 + j, (w * w - v) * (v + 2.0) - (w + 3.0) * abs(v - 1.0) + max(w, v));
            store(z + i * 32 + j, (u - v) * t + (u + 3.0) * (v - 7.0) - (u * v + t) * (v - u) + w);
        }
    }
}
