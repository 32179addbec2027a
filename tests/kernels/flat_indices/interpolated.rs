//! Coordinates that are computed as floats and cast: the largest one, which no op clamps, belongs to the last element of `x`.
//! x: whole 2048
//! y: zeros 8192
//! h: 16, 8, 7, 1
//! w: 32, 16, 5, 1
//! n: 8192, 8192, 8120, 8192
//! grid: 8
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, h: usize, w: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (c, r, p) = (o % (2 * w), o / (2 * w) % (2 * h), o / (4 * h * w));
    let (fy, fx) = (max((r as f32 + 0.5) * 0.5 - 0.5, 0.0), max((c as f32 + 0.5) / 2.0 - 0.5, 0.0));
    let (top, left) = (fy as i64, fx as i64);
    let (bottom, nearest) = (min(top + 1, h - 1), floor(0.5 * (c as f32)) as i64);
    let plane = x + p * h * w;
    let a = load(plane + top * w + left, mask = mask) + load(plane + bottom * w + left, mask = mask) * (fy - top as f32);
    store(y + o, a + load(plane + r / 2 * w + nearest, mask = mask) * (fx - left as f32), mask = mask);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, h: usize, w: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let c = o % (2 * w);
            let r = o / (2 * w) % (2 * h);
            let fy = max((r as f32 + 0.5) * 0.5 - 0.5, 0.0);
            let fx = max((c as f32 + 0.5) * 0.5 - 0.5, 0.0);
            let top = fy as i64;
            let left = fx as i64;
            let plane = o / (4 * h * w) * (h * w);
            let a = load(x + plane + top * w + left) + load(x + plane + min(top + 1, h - 1) * w + left) * (fy - top as f32);
            store(y + o, a + load(x + plane + r / 2 * w + c / 2) * (fx - left as f32));
        }
    }
}
