//! The test of a loop loads a tile by columns, which the loop's body and what follows use by rows.
//! x: any 4096
//! y: zeros 1024
//! z: zeros 3072
//! n: 0, 1, 3
fn kernel(x: Ptr<i64>, y: PtrMut<i64>, z: PtrMut<i64>, n: usize) {
    let (i, j) = (arange(0, 32).col(), arange(0, 32).row());
    let mut tile = zeros::<i64>([32, 32]);
    let mut k = 0;
    while {
        tile = load(x + 1024 * k + 32 * j + i);
        k < n
    } {
        store(z + 1024 * k + 32 * i + j, tile);
        k += 1;
    }
    store(y + 32 * i + j, tile);
}

fn reference(x: Ptr<i64>, y: PtrMut<i64>, z: PtrMut<i64>, n: usize) {
    for i in 0..32 {
        for j in 0..32 {
            for k in 0..n {
                store(z + 1024 * k + 32 * i + j, load(x + 1024 * k + 32 * j + i));
            }
            store(y + 32 * i + j, load(x + 1024 * n + 32 * j + i));
        }
    }
}
