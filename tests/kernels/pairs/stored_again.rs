//! Stores to one element, and to its neighbour: the last one to an element stays, whichever of them are joined.
//! y: zeros 1026
//! z: zeros 1026
//! k: 5, -9
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>, k: i32) {
    let i = arange(0, 512);
    store(y + 2 * i, full([512], k));
    store(y + 2 * i, full([512], k + 1));
    store(y + 2 * i + 1, full([512], k + 2));
    store(z + 2 * i, full([512], k));
    store(z + 2 * i, full([512], k + 1));
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>, k: i32) {
    for i in 0..512 {
        store(y + 2 * i, k + 1);
        store(y + 2 * i + 1, k + 2);
        store(z + 2 * i, k + 1);
    }
}
