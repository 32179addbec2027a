//! Each lane loads every other element and stores one 1024 further on, which another lane of the same thread has loaded.
//! x: any 5600
//! y: any 2048
//! n: 0, 1, 524, 1212, 2047
fn kernel(x: PtrMut<i32>, y: Ptr<i32>, n: usize) {
    let lanes = arange(0, 2048);
    let mask = lanes < n;
    store(x + 1024 + 2 * lanes, load(x + 2 * lanes, mask = mask) + load(y + lanes, mask = mask), mask = mask);
}

fn reference(x: PtrMut<i32>, y: Ptr<i32>, n: usize) {
    for i in range(0, n, 1).rev() {
        store(x + 1024 + 2 * i, load(x + 2 * i) + load(y + i));
    }
}
