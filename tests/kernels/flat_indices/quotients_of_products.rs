//! Quotients by products, of which the factors are divisors, too.
//! x: any 2048
//! y: zeros 2048
//! a: 8, 5, 1, 12
//! b: 7, 16, 1, 4
//! c: 3, 1, 1, 40
//! grid: 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, a: usize, b: usize, c: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let first = load(x + o / (a * b)) + load(x + o / a % b);
    let second = load(x + o / (a * b) % c) + load(x + o / (b * c * a));
    let third = load(x + o / (2 * a)) + load(x + o / (2 * a) % (4 * b)) + load(x + o / (8 * b * a));
    store(y + o, first + second + third);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, a: usize, b: usize, c: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        let first = load(x + o / (a * b)) + load(x + o / a % b);
        let second = load(x + o / (a * b) % c) + load(x + o / (b * c * a));
        let third = load(x + o / (2 * a)) + load(x + o / (2 * a) % (4 * b)) + load(x + o / (8 * b * a));
        store(y + o, first + second + third);
    }
}
