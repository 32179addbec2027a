//! A frame that mirrors by absolute values, the largest of which comes from a negative index.
//! x: any 2048
//! y: zeros 4096
//! h: 8, 5, 16, 1
//! w: 32, 13, 24, 1
//! p: 7, 3, 4, 0
//! n: 4048, 3971, 3072, 2048
//! grid: 4
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, h: usize, w: usize, p: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (oh, ow) = (h + 2 * p, w + 2 * p);
    let (c, r) = (abs(o % ow - p), abs(o / ow % oh - p));
    let (c, r) = (select(c >= w, 2 * (w - 1) - c, c), select(r >= h, 2 * (h - 1) - r, r));
    let far = abs(-(o % w) - 2030);
    store(y + o, load(x + (o / (ow * oh) * h + r) * w + c, mask = mask) + load(x + far, mask = mask), mask = mask);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, h: usize, w: usize, p: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let oh = h + 2 * p;
            let ow = w + 2 * p;
            let mut c = abs(o % ow - p);
            let mut r = abs(o / ow % oh - p);
            if c >= w {
                c = 2 * (w - 1) - c;
            }
            if r >= h {
                r = 2 * (h - 1) - r;
            }
            store(y + o, load(x + (o / (ow * oh) * h + r) * w + c) + load(x + 2030 + o % w));
        }
    }
}
