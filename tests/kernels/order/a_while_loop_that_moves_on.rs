//! A `while` loop moves on by a tile: each iteration loads what the one before has stored, in another layout.
//! x: whole 16384
//! y: whole 8192
//! z: zeros 8192
//! n: 0, 1, 3
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 1024);
    let mut sums = sum(load(x + lanes.col() * 16 + 2 * arange(0, 8).row()), axis = 1);
    let mut p = 0;
    while p < n {
        store(z + p * 2048 + 2 * lanes, load(y + p * 2048 + 2 * lanes));
        store(y + p * 2048 + 2048 + 2 * lanes, sums);
        sums += 1;
        p += 1;
    }
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for j in 0..1024 {
        let mut sums = 0i32;
        for k in 0..8 {
            sums += load(x + j * 16 + 2 * k);
        }
        for i in 0..n {
            store(z + i * 2048 + 2 * j, load(y + i * 2048 + 2 * j));
            store(y + i * 2048 + 2048 + 2 * j, sums + i as i32);
        }
    }
}
