//! Divisors that are constants: multiples of a run, others, and 1.
//! x: any 2048
//! y: zeros 2048
//! n: 2048, 2000, 1
//! grid: 2
fn kernel(x: Ptr<u16>, y: PtrMut<u16>, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let at = o / 64 * 64 + o % 64 / 8 + o % 8 * 8;
    let other = o / 12 * 12 + (11 - o % 12);
    store(y + o, load(x + at, mask = o < n) + load(x + other / 1, mask = other < n), mask = o < n);
}

fn reference(x: Ptr<u16>, y: PtrMut<u16>, n: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        if o < n {
            let at = o / 64 * 64 + o % 64 / 8 + o % 8 * 8;
            let other = o / 12 * 12 + (11 - o % 12);
            let mut sum = load(x + at);
            if other < n {
                sum += load(x + other);
            }
            store(y + o, sum);
        }
    }
}
