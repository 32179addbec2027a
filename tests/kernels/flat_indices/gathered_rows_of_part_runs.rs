//! The same, of a tensor that ends in the middle of a run.
//! x: any 2044
//! index: counting 256
//! y: zeros 2048
//! d: 8, 16, 12, 64
//! grid: 2
fn kernel(x: Ptr<f16>, index: Ptr<i64>, y: PtrMut<f16>, d: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let row = load(index + o / d) * 2 - 3;
    store(y + o, load(x + row * d + o % d, mask = row != 7) + load(x + (o % d - row * d)));
}

fn reference(x: Ptr<f16>, index: Ptr<i64>, y: PtrMut<f16>, d: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        let row = load(index + o / d) * 2 - 3;
        store(y + o, load(x + row * d + o % d, mask = row != 7) + load(x + o % d - row * d));
    }
}
