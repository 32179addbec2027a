//! A tile is loaded in front of a branch and used in it behind a store to the same elements; its indices are no sums of lanes.
//! y: whole 64
//! z: zeros 64
//! n: 0, 1
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let at = arange(0, 64) ^ 5;
    let v = load(y + at);
    if n > 0 {
        store(y + at, full::<i32>([64], 77));
        store(z + at, v);
    }
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for i in 0..64 {
        if n > 0 {
            store(z + i, load(y + i));
            store(y + i, 77);
        }
    }
}
