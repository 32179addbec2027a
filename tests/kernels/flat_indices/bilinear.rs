//! Coordinates that are computed as floats, cast, and clamped to the plane.
//! x: whole 2048
//! y: zeros 4096
//! h: 8, 8, 7, 1
//! w: 16, 8, 5, 1
//! s: 2, 2, 3, 4
//! n: 4096, 1024, 2835, 64
//! grid: 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, h: usize, w: usize, s: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (ow, oh) = (w * s, h * s);
    let (c, r, p) = (o % ow, o / ow % oh, o / (ow * oh));
    let (fy, fx) = (max((r as f32 + 0.5) / s as f32 - 0.5, 0.0), max((c as f32 + 0.5) / s as f32 - 0.5, 0.0));
    let (top, left) = (min(fy as usize, h - 1), min(fx as usize, w - 1));
    let (bottom, right) = (min(top + 1, h - 1), min(left + 1, w - 1));
    let plane = x + p * (h * w);
    let a = load(plane + top * w + left, mask = mask) + load(plane + bottom * w + left, mask = mask) * (fy - top as f32);
    store(y + o, a + load(plane + top * w + right, mask = mask) * (fx - left as f32), mask = mask);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, h: usize, w: usize, s: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let ow = w * s;
            let oh = h * s;
            let c = o % ow;
            let r = o / ow % oh;
            let fy = max((r as f32 + 0.5) / s as f32 - 0.5, 0.0);
            let fx = max((c as f32 + 0.5) / s as f32 - 0.5, 0.0);
            let top = min(fy as usize, h - 1);
            let left = min(fx as usize, w - 1);
            let plane = o / (ow * oh) * (h * w);
            let a = load(x + plane + top * w + left) + load(x + plane + min(top + 1, h - 1) * w + left) * (fy - top as f32);
            store(y + o, a + load(x + plane + top * w + min(left + 1, w - 1)) * (fx - left as f32));
        }
    }
}
