//! The column, too, comes from memory or is moved: the neighbours of a run are no neighbours, or do not begin at a multiple of the run.
//! x: any 512
//! at: whole 1024
//! y: zeros 4096
//! d: 8, 16, 32, 12
//! s: 0, 8, 3, 12
//! grid: 4
fn kernel(x: Ptr<f16>, at: Ptr<i64>, y: PtrMut<f16>, d: usize, s: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let row = load(at + o / d);
    let v = load(x + row * d + o % d + s) + load(x + row * d + (d - 1 - o % d)) + load(x + row * d + 2 * (o % d));
    store(y + o, v + load(x + row + o % d) + load(x + load(at + o % d)));
}

fn reference(x: Ptr<f16>, at: Ptr<i64>, y: PtrMut<f16>, d: usize, s: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        let row = load(at + o / d);
        let v = load(x + row * d + o % d + s) + load(x + row * d + (d - 1 - o % d)) + load(x + row * d + 2 * (o % d));
        store(y + o, v + load(x + row + o % d) + load(x + load(at + o % d)));
    }
}
