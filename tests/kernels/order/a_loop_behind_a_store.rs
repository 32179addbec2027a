//! Stores a tile in front of a loop; its first iteration loads the tile in another layout: by columns, not by rows.
//! x: any 1024
//! y: counting 6144
//! z: zeros 3072
//! n: 0, 1, 3
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, n: usize) {
    let (i, j) = (arange(0, 32).col(), arange(0, 32).row());
    store(y + 2 * (32 * i + j), load(x + 32 * i + j));
    let mut k = 0;
    while k < n {
        store(z + 1024 * k + 32 * j + i, load(y + 2048 * k + 2 * (32 * i + j)) as i64);
        k += 1;
    }
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, n: usize) {
    for i in 0..1024 {
        store(y + 2 * i, load(x + i));
    }
    for k in 0..n {
        for i in 0..32 {
            for j in 0..32 {
                store(z + 1024 * k + 32 * j + i, load(y + 2048 * k + 64 * i + 2 * j) as i64);
            }
        }
    }
}
