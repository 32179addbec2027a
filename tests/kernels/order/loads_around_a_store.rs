//! The same tile is loaded on both sides of a store to it, and again behind an atomic.
//! y: whole 256
//! z: zeros 768
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>) {
    let lanes = arange(0, 256);
    let before = load(y + lanes);
    store(y + lanes, before + 100);
    let behind = load(y + lanes);
    atomic_add(y + lanes, 1000);
    let last = load(y + lanes);
    store(z + lanes, before);
    store(z + 256 + lanes, behind);
    store(z + 512 + lanes, last);
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>) {
    for i in 0..256 {
        let v = load(y + i);
        store(z + i, v);
        store(z + 256 + i, v + 100);
        store(z + 512 + i, v + 1100);
        store(y + i, v + 1100);
    }
}
