//! Each row has a weight, and the tensor of weights ends with that of the last row.
//! x: whole 4096
//! w: whole 8001
//! y: zeros 4096
//! d: 100, 101, 103, 200, 1000, 4095
//! c: 41, 41, 50, 3, 5, 2
//! s: 200, 200, 200, 400, 2000, 8000
//! grid: 4
fn kernel(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f16>, d: usize, c: usize, s: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let (at, row) = (o % d, o / d % c);
    let v = load(x + o, mask = at >= 2) * load(w + row * s) + load(w + o / d * s);
    store(y + o, v);
}

fn reference(x: Ptr<f16>, w: Ptr<f16>, y: PtrMut<f16>, d: usize, c: usize, s: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        let v = load(x + o, mask = o % d >= 2) * load(w + o / d % c * s) + load(w + o / d * s);
        store(y + o, v);
    }
}
