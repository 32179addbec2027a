//! Divisors that the kernel computes or loads: each program computes the reciprocal of a small one.
//! x: whole 64
//! y: zeros 8192
//! n: 1, 3, 64, 0, -5, 4294967297
//! grid: 8
fn kernel(x: Ptr<i64>, y: PtrMut<i64>, n: usize) {
    let (i, size) = (arange(0, 512), load(x + program_id(0)));
    let from = program_id(0) * 1024 + i;
    store(y + from, (i + 7) / size * 3 + (i + 7) % size);
    let part = size + n;
    store(y + from + 512, from / part * 3 + from % part);
}

fn reference(x: Ptr<i64>, y: PtrMut<i64>, n: usize) {
    for program in 0..8 {
        let size = load(x + program);
        for i in 0..512 {
            let from = program * 1024 + i;
            store(y + from, (i + 7) / size * 3 + (i + 7) % size);
            store(y + from + 512, from / (size + n) * 3 + from % (size + n));
        }
    }
}
