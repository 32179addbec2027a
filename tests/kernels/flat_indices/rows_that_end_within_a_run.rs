//! The tensor ends within a run of a row from memory.
//! x: any 100
//! at: whole 1024
//! y: zeros 4096
//! d: 8, 16, 24, 4, 32
//! grid: 4
fn kernel(x: Ptr<f16>, at: Ptr<i64>, y: PtrMut<f16>, d: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    store(y + o, load(x + load(at + o / d) * d + o % d, other = 1.5));
}

fn reference(x: Ptr<f16>, at: Ptr<i64>, y: PtrMut<f16>, d: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        let from = load(at + o / d) * d + o % d;
        let mut v = 1.5f16;
        if from >= 0 && from < 100 {
            v = load(x + from);
        }
        store(y + o, v);
    }
}
