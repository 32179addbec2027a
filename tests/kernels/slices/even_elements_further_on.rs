//! Each lane loads every other element and stores one 256 further on, which another lane of the same thread has loaded.
//! x: any 1400
//! y: any 512
//! n: 0, 1, 131, 303, 511
fn kernel(x: PtrMut<i32>, y: Ptr<i32>, n: usize) {
    let lanes = arange(0, 512);
    let mask = lanes < n;
    store(x + 256 + 2 * lanes, load(x + 2 * lanes, mask = mask) + load(y + lanes, mask = mask), mask = mask);
}

fn reference(x: PtrMut<i32>, y: Ptr<i32>, n: usize) {
    for i in range(0, n, 1).rev() {
        store(x + 256 + 2 * i, load(x + 2 * i) + load(y + i));
    }
}
