//! A program takes every so many rows, which begin at one distance from a multiple of 16 bytes, and carries a sum of columns. In the last launches a row does not fit
//! in a shifted tile, is shorter than a run, or does not keep its distance.
//! x: whole 3100
//! g: whole 3100
//! w: whole 256
//! y: zeros 3100
//! parts: zeros 2600
//! rows: 12, 12, 11, 12, 12, 11, 12, 12, 12, 12, 3, 0
//! n: 249, 250, 250, 252, 8, 9, 255, 256, 6, 249, 249, 249
//! start: 0, 0, 6, 5, 3, 0, 1, 3, 1, 0, 2, 1
//! grid: 8, 4, 4, 2, 8, 8, 8, 8, 8, 5, 8, 8
//! warps: 1
fn kernel(x: Ptr<f16>, g: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f16>, parts: PtrMut<f32>, rows: usize, n: usize, start: usize) {
    let column = arange(0, 256);
    let mask = column < n;
    let w = load(w + column, mask = mask) as f32;
    let mut total = zeros::<f32>([256]);
    for row in range(program_id(0), rows, num_programs(0)) {
        let at = start + row * n + column;
        let v = load(x + at, mask = mask) as f32;
        let d = load(g + at, mask = mask) as f32;
        let all = sum(v * w);
        store(y + at, min(max(v + d * w - all, -2048.0), 2048.0) as f16, mask = mask);
        total += v + d * all;
    }
    store(parts + program_id(0) * n + column, total, mask = mask);
}

fn reference(x: Ptr<f16>, g: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f16>, parts: PtrMut<f32>, rows: usize, n: usize, start: usize) {
    for row in range(program_id(0), rows, num_programs(0)) {
        let mut all = 0.0f32;
        for column in 0..n {
            all += load(x + start + row * n + column) as f32 * load(w + column) as f32;
        }
        for column in 0..n {
            let at = start + row * n + column;
            let v = load(x + at) as f32;
            let d = load(g + at) as f32;
            let w = load(w + column) as f32;
            store(y + at, min(max(v + d * w - all, -2048.0), 2048.0) as f16);
            let part = parts + program_id(0) * n + column;
            store(part, load(part) + v + d * all);
        }
    }
}
