//! A store in front of a branch stays there: the branch stores to the same elements.
//! y: zeros 1024
//! z: zeros 1024
//! n: 3, 4, 0
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let i = arange(0, 512);
    store(y + 2 * i, i as i32);
    if n > 3 {
        store(y + 2 * i, 7 - i as i32);
    }
    store(y + 2 * i + 1, 5 - i as i32);
    store(z + 2 * i, i as i32);
    for k in 0..n {
        store(z + 2 * i, (k + 3 * i) as i32);
    }
    store(z + 2 * i + 1, 5 - i as i32);
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for i in 0..512 {
        store(y + 2 * i, select(n > 3, 7 - i as i32, i as i32));
        store(y + 2 * i + 1, 5 - i as i32);
        store(z + 2 * i, select(n > 0, (n - 1 + 3 * i) as i32, i as i32));
        store(z + 2 * i + 1, 5 - i as i32);
    }
}
