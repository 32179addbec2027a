//! Only one arm of a branch ends with a barrier, so behind the branch a tile that the other arm stored is not yet visible to all threads.
//! y: counting 1024
//! z: zeros 1024
//! n: 0, 1
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 1024);
    if n == 0 {
        store(y + 1023 - lanes, 3 * lanes as i32);
    } else {
        store(y + lanes, 1);
        debug_barrier();
    }
    store(z + lanes, load(y + lanes));
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for i in 0..1024 {
        let v = if n == 0 { 3 * (1023 - i as i32) } else { 1 };
        store(y + i, v as i32);
        store(z + i, v as i32);
    }
}
