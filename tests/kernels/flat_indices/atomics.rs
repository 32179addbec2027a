//! Sums by atomics at indices that are taken apart, and old values that later ops use.
//! x: whole 1024
//! y: zeros 64
//! z: zeros 1024
//! d: 16, 64, 7, 5
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, d: usize) {
    let o = arange(0, 1024);
    atomic_add(y + o % d, load(x + o), mask = o / d != 3);
    store(z + o / d * d + (d - 1 - o % d), load(x + o) * 2, mask = o / d < 1024 / d);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, d: usize) {
    for o in 0..1024 {
        if o / d != 3 {
            store(y + o % d, load(y + o % d) + load(x + o));
        }
        if o / d < 1024 / d {
            store(z + o / d * d + (d - 1 - o % d), load(x + o) * 2);
        }
    }
}
