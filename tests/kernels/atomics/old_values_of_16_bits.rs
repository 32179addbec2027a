//! The kernel computes with the old value of an atomic on `i16`, so its 32-bit register must be sign-extended.
//! x: any 300
//! y: zeros 300
//! z: zeros 300
//! n: 1, 100, 300
fn kernel(x: PtrMut<i16>, y: PtrMut<i32>, z: PtrMut<bool>, n: usize) {
    let at = arange(0, 512);
    let old = atomic_cas(x + at, 0, 1, mask = at < n);
    store(y + at, old as i32 / 3, mask = at < n);
    store(z + at, old < -5, mask = at < n);
}

fn reference(x: PtrMut<i16>, y: PtrMut<i32>, z: PtrMut<bool>, n: usize) {
    for i in 0..n {
        let old = load(x + i);
        if old == 0 {
            store(x + i, 1);
        }
        store(y + i, old as i32 / 3);
        store(z + i, old < -5);
    }
}
