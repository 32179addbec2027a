//! Each lane loads an element and stores one 512 further on, which another lane, of the same thread, has loaded; masks leave a part of the tile.
//! x: any 2800
//! n: 0, 1, 131, 524, 1212, 2047
//! warps: 1
fn kernel(x: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 2048);
    let mask = lanes < n;
    store(x + 512 + lanes, load(x + lanes, mask = mask) + 1, mask = mask);
}

fn reference(x: PtrMut<i32>, n: usize) {
    for i in range(0, n, 1).rev() {
        store(x + 512 + i, load(x + i) + 1);
    }
}
