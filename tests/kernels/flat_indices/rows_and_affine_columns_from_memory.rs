//! A number from memory for each run, beside an index that is not taken apart.
//! x: any 4096
//! at: whole 1024
//! y: zeros 4096
//! d: 8, 16, 32, 12
//! grid: 4
fn kernel(x: Ptr<f16>, at: Ptr<i64>, y: PtrMut<f16>, d: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    store(y + o, load(x + load(at + o / d) * d + o) + load(x + o % d));
}

fn reference(x: Ptr<f16>, at: Ptr<i64>, y: PtrMut<f16>, d: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        store(y + o, load(x + load(at + o / d) * d + o) + load(x + o % d));
    }
}
