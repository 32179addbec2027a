//! Rows with a border that reflects them, and rows that are rolled: selections and clamps of indices.
//! x: any 2048
//! y: zeros 4096
//! w: 32, 24, 13, 60
//! p: 4, 8, 3, 2
//! n: 2560, 4000, 3040, 2048
//! grid: 4
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, w: usize, p: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let ow = w + 2 * p;
    let (row, c) = (o / ow, o % ow - p);
    let c = select(c < 0, -c, c);
    let c = select(c >= w, 2 * (w - 1) - c, c);
    let rolled = (o % w + w - p) % w;
    store(y + o, load(x + row * w + c, mask = mask) + load(x + o / w * w + rolled, mask = mask), mask = mask);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, w: usize, p: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let ow = w + 2 * p;
            let mut c = o % ow - p;
            if c < 0 {
                c = -c;
            }
            if c >= w {
                c = 2 * (w - 1) - c;
            }
            let rolled = (o % w + w - p) % w;
            store(y + o, load(x + o / ow * w + c) + load(x + o / w * w + rolled));
        }
    }
}
