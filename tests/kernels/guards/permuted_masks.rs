//! A mask of a cube whose axes were permuted in a circle: what it leaves of each axis is another number.
//! x: counting 3000
//! y: zeros 3000
//! n: 7, 8, 3, 0
//! m: 5, 7, 3, 4
//! s: 100, 99, 90, 2000
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, n: usize, m: usize, s: usize) {
    let (i, j, k) = (reshape(arange(0, 8), [8, 1, 1]), reshape(arange(0, 8), [1, 8, 1]), reshape(arange(0, 8), [1, 1, 8]));
    let mask = permute((i + zeros::<i64>([8, 8, 8]) < m) & (j + zeros::<i64>([8, 8, 8]) < n), [2, 0, 1]);
    let at = i * s + j * (n + 1) + k;
    store(y + at, load(x + at, mask = mask), mask = mask);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, n: usize, m: usize, s: usize) {
    for i in 0..8 {
        for j in 0..min(m, 8) {
            for k in 0..min(n, 8) {
                let at = i * s + j * (n + 1) + k;
                store(y + at, load(x + at));
            }
        }
    }
}
