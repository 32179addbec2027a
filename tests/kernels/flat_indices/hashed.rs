//! A hash of a quotient: constants beyond 32 bits arise in between.
//! x: any 1024
//! y: zeros 1024
//! d: 64, 7
//! m: 1000, 1024
//! grid: 1
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, d: usize, m: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let h = (o / d + 7919) * 1000003;
    store(y + o, load(x + h % m) + load(x + (o * 2147483647 * 2147483647 * 4 + o / d) % m));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, d: usize, m: usize) {
    for o in 0..1024 {
        let h = (o / d + 7919) * 1000003;
        store(y + o, load(x + h % m) + load(x + (o * 2147483647 * 2147483647 * 4 + o / d) % m));
    }
}
