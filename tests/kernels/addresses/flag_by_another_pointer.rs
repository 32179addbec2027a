//! A scalar is read through a pointer made of an address, and what depends on it writes through the tensor's own: one thread reads for all.
//! y: counting 4
//! z: zeros 64
#[kernel(unchecked)]
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>) {
    let p = (y + 1) as u64 as PtrMut<i32>;
    let flag = load(p);
    store(y + 1, flag + 5);
    if flag == 1 {
        store(z + arange(0, 64), flag + 2);
    }
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>) {
    store(y + 1, 6);
    for i in 0..64 {
        store(z + i, 3);
    }
}
