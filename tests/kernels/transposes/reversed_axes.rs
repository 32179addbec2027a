//! Three axes in reverse order: the axis in the middle has one index in a tile. The elements are cast to a smaller type.
//! x: whole 8192
//! y: zeros 8192
//! a: 64, 32, 16, 64, 96
//! b: 2, 8, 4, 3, 1
//! c: 64, 32, 64, 16, 64
//! n: 8192, 8192, 4096, 3072, 6144
//! grid: 4, 4, 2, 2, 3
fn kernel(x: Ptr<f32>, y: PtrMut<i8>, a: usize, b: usize, c: usize, n: usize) {
    let o = program_id(0) * 2048 + arange(0, 2048);
    let mask = o < n;
    let (k, j, i) = (o % a, o / a % b, o / (a * b));
    store(y + o, load(x + (k * b + j) * c + i, mask = mask) as i8, mask = mask);
}

fn reference(x: Ptr<f32>, y: PtrMut<i8>, a: usize, b: usize, c: usize, n: usize) {
    for e in 0..2048 {
        let o = program_id(0) * 2048 + e;
        if o < n {
            store(y + o, load(x + (o % a * b + o / a % b) * c + o / (a * b)) as i8);
        }
    }
}
