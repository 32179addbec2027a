//! Masks that hold for a part of a run, and loads of every other element: no access of such a run is wide.
//! x: any 4096
//! y: zeros 2048
//! d: 64, 40, 96, 13
//! n: 2048, 2001, 2048, 2048
//! grid: 2
fn kernel(x: Ptr<f16>, y: PtrMut<f16>, d: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let c = o % d;
    let row = x + o / d * d;
    let v = load(row + c) + load(row + c, mask = c <= 16) + load(row + c, mask = (c > 8) & (c % 3 != 1));
    let w = load(x + c * 2) + load(x + 2 * (o % d) + 1, mask = o < n);
    store(y + o, v + w, mask = o < n);
}

fn reference(x: Ptr<f16>, y: PtrMut<f16>, d: usize, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let c = o % d;
            let own = load(x + o);
            let mut v = own;
            v = v + select(c <= 16, own, 0.0);
            v = v + select(c > 8 && c % 3 != 1, own, 0.0);
            store(y + o, v + (load(x + c * 2) + load(x + 2 * c + 1)));
        }
    }
}
