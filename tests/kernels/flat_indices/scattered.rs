//! The same exchange as a store: the loads are in order, and the stores of a run are wide, or single.
//! x: any 4096
//! y: zeros 4096
//! s: 4, 2, 5, 3
//! h: 8, 3, 4, 7
//! d: 32, 64, 24, 13
//! n: 4096, 3072, 4080, 4095
//! grid: 4
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, s: usize, h: usize, d: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (c, t, head, b) = (o % d, o / d % s, o / (d * s) % h, o / (d * s * h));
    store(y + ((b * s + t) * h + head) * d + c, load(x + o, mask = mask), mask = mask);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, s: usize, h: usize, d: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let t = o / d % s;
            let head = o / (d * s) % h;
            let b = o / (d * s * h);
            store(y + ((b * s + t) * h + head) * d + o % d, load(x + o));
        }
    }
}
