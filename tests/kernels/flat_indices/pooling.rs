//! Windows with steps of 2 that reach over the edges: masks bound coordinates from below and above, one per run and one per element.
//! x: whole 4096
//! y: zeros 2048
//! h: 16, 32, 15, 7, 1
//! w: 32, 16, 21, 9, 1
//! n: 1024, 1024, 1056, 1000, 1
//! grid: 2
fn kernel(x: Ptr<f16>, y: PtrMut<f32>, h: usize, w: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (oh, ow) = ((h + 1) / 2, (w + 1) / 2);
    let (c, r, p) = (o % ow, o / ow % oh, o / (ow * oh));
    let mut most = full::<f32>([1024], f32::NEG_INFINITY);
    for i in static_range(0, 3) {
        for j in static_range(0, 3) {
            let (y, z) = (r * 2 + i - 1, c * 2 + j - 1);
            let inside = mask & (y >= 0) & (y < h) & (z >= 0) & (z < w);
            most = max(most, load(x + p * (h * w) + y * w + z, mask = inside, other = f16::NEG_INFINITY) as f32);
        }
    }
    store(y + o, most, mask = mask);
}

fn reference(x: Ptr<f16>, y: PtrMut<f32>, h: usize, w: usize, n: usize) {
    for at in 0..1024 {
        let o = program_id(0) * 1024 + at;
        if o < n {
            let oh = (h + 1) / 2;
            let ow = (w + 1) / 2;
            let c = o % ow;
            let r = o / ow % oh;
            let p = o / (ow * oh);
            let mut most = f32::NEG_INFINITY;
            for i in 0..3 {
                for j in 0..3 {
                    let row = r * 2 + i - 1;
                    let column = c * 2 + j - 1;
                    if row >= 0 && row < h && column >= 0 && column < w {
                        most = max(most, load(x + p * (h * w) + row * w + column) as f32);
                    }
                }
            }
            store(y + o, most);
        }
    }
}
