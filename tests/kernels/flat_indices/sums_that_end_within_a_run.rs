//! The tensor ends within a run: of a run at its end, some elements are in bounds.
//! x: whole 4096
//! at: whole 1024
//! y: zeros 102
//! d: 4, 8, 12, 6, 32
//! n: 4096, 3072, 4090, 4095, 2048
//! grid: 4
fn kernel(x: Ptr<bf16>, at: Ptr<i64>, y: PtrMut<f32>, d: usize, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let mask = o < n;
    let row = load(at + o / d, mask = mask);
    atomic_add(y + row * d + o % d, load(x + o, mask = mask) as f32, mask = mask);
}

fn reference(x: Ptr<bf16>, at: Ptr<i64>, y: PtrMut<f32>, d: usize, n: usize) {
    // One program, because the sums of several would race.
    for p in 0..4 * (program_id(0) == 0) as usize {
        for i in 0..1024 {
            let o = p * 1024 + i;
            if o < n {
                let to = load(at + o / d) * d + o % d;
                store(y + to, load(y + to) + load(x + o) as f32);
            }
        }
    }
}
