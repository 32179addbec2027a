//! Each iteration stores what the next one loads, so the load must not run ahead: of tiles, and of numbers.
//! x: any 4096
//! y: any 9
//! n: 0, 1, 2, 7
fn kernel(x: PtrMut<i32>, y: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 512);
    for i in range(0, n, 1, num_stages = 3) {
        store(x + 512 * (i + 1) + lanes, load(x + 512 * i + lanes) + 1);
    }
    for i in range(0, n, 1, num_stages = 2) {
        store(y + i + 1, load(y + i) + 1);
    }
}

fn reference(x: PtrMut<i32>, y: PtrMut<i32>, n: usize) {
    for i in 0..n {
        for j in 0..512 {
            store(x + 512 * (i + 1) + j, load(x + 512 * i + j) + 1);
        }
        store(y + i + 1, load(y + i) + 1);
    }
}
