//! Blocks of a vector in steps that are an argument: full ones, and one behind the end. Indices begin between blocks, too.
//! x: whole 2000
//! y: zeros 64
//! first: 0, 64, 0, 7, -64, 0, 1920, 60
//! n: 1920, 1984, 2000, 1999, 1000, 9223372036854775807, 1984, 1984
//! step: 1, 2, 3, 5, 4, 144115188075855872, 1, 1
//! warps: 1
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, first: i64, n: i64, step: i64) {
    let j = arange(0, 64);
    let mut total = zeros::<f32>([64]);
    for i in range(first, n, step * 64) {
        total += load(x + i + j, mask = i + j < n);
    }
    store(y + j, total);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, first: i64, n: i64, step: i64) {
    for j in 0..64 {
        let mut total = 0.0f32;
        for i in range(first, n, step * 64) {
            total += load(x + i + j, mask = i + j < n);
        }
        store(y + j, total);
    }
}
