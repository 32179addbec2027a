//! A remainder of a remainder: a digit where one divisor is a multiple of the other, and none elsewhere.
//! x: any 8192
//! y: zeros 6144
//! n: 32, 64, 16
//! m: 64, 32, 128
//! grid: 6
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize, m: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let i = o / (n * 3);
    let (odd, even, same) = (o % (n * 3) % (n * 2), o % (n * 3) % n, o % n % (n * 3));
    store(y + o, load(x + odd * m + i) - load(x + even * m + i) * 2.0 + load(x + same * m + i));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize, m: usize) {
    for e in 0..1024 {
        let o = program_id(0) * 1024 + e;
        let i = o / (n * 3);
        let odd = o % (n * 3) % (n * 2);
        let even = o % (n * 3) % n;
        let same = o % n % (n * 3);
        store(y + o, load(x + odd * m + i) - load(x + even * m + i) * 2.0 + load(x + same * m + i));
    }
}
