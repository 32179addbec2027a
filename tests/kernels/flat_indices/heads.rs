//! Axes are exchanged: both sides are wide where the innermost extent is a multiple of a run, and one side is not where it is odd.
//! x: any 4096
//! y: zeros 4096
//! s: 4, 2, 5, 3, 1
//! h: 8, 3, 4, 7, 5
//! d: 32, 64, 24, 13, 1
//! n: 4096, 3072, 4080, 4095, 40
//! grid: 4
fn kernel(x: Ptr<bf16>, y: PtrMut<bf16>, s: usize, h: usize, d: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let (c, t, head, b) = (o % d, o / d % s, o / (d * s) % h, o / (d * s * h));
    store(y + o, load(x + ((b * s + t) * h + head) * d + c, mask = mask), mask = mask);
}

fn reference(x: Ptr<bf16>, y: PtrMut<bf16>, s: usize, h: usize, d: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let t = o / d % s;
            let head = o / (d * s) % h;
            let b = o / (d * s * h);
            store(y + o, load(x + ((b * s + t) * h + head) * d + o % d));
        }
    }
}
