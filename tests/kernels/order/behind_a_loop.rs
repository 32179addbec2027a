//! Stores a tile by rows in front of a loop that may have no iterations, and loads it by columns behind the loop.
//! x: any 1024
//! y: zeros 2048
//! z: zeros 1024
//! iterations: zeros 8
//! n: 0, 1, 8
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, iterations: PtrMut<i64>, n: usize) {
    let (i, j) = (arange(0, 32).col(), arange(0, 32).row());
    store(y + 2 * (32 * i + j), load(x + 32 * i + j));
    for k in 0..n {
        store(iterations + k, k + 1);
    }
    store(z + 32 * j + i, load(y + 2 * (32 * i + j)) as i64);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, iterations: PtrMut<i64>, n: usize) {
    for i in 0..32 {
        for j in 0..32 {
            store(y + 64 * i + 2 * j, load(x + 32 * i + j));
            store(z + 32 * j + i, load(x + 32 * i + j) as i64);
        }
    }
    for k in 0..n {
        store(iterations + k, k + 1);
    }
}
