//! Each lane loads an element and stores one 128 further on, which another lane, of the same thread, has loaded; masks leave a part of the tile.
//! x: any 700
//! n: 0, 1, 131, 303, 511
fn kernel(x: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 512);
    let mask = lanes < n;
    store(x + 128 + lanes, load(x + lanes, mask = mask) + 1, mask = mask);
}

fn reference(x: PtrMut<i32>, n: usize) {
    for i in range(0, n, 1).rev() {
        store(x + 128 + i, load(x + i) + 1);
    }
}
