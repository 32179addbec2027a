//! The stride grows in each iteration. One element is stored in an iteration and loaded in the next, under another layout.
//! x: whole 16384
//! y: whole 14000
//! z: zeros 14000
//! n: 2, 3, 5
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 1024);
    let mut sums = sum(load(x + lanes.col() * 16 + 2 * arange(0, 8).row()), axis = 1);
    for k in 2..n {
        store(z + k * 2048 + 2 * lanes, load(y + lanes * k * 2));
        store(y + lanes * k * 2 + 2, sums);
        sums += 1;
    }
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for k in 2..n {
        for j in 0..1024 {
            store(z + k * 2048 + 2 * j, load(y + j * k * 2));
        }
        for j in 0..1024 {
            let mut sums = 0i32;
            for i in 0..8 {
                sums += load(x + j * 16 + 2 * i);
            }
            store(y + j * k * 2 + 2, sums + (k - 2) as i32);
        }
    }
}
