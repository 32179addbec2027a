//! Adds to a tile by atomics that release what was stored before, and loads the tile in another layout: the atomics, too, have to be over by then.
//! x: any 1024
//! y: any 1024
//! z: zeros 8
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>) {
    let at = 2 * (128 * arange(0, 4).col() + arange(0, 128).row());
    atomic_add(y + at, load(x + at), sem = "release");
    store(z + 2 * arange(0, 4), sum(load(y + at), axis = 1));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>) {
    for i in 0..4 {
        let mut total = 0;
        for j in 0..128 {
            let at = 256 * i + 2 * j;
            let added = load(y + at) + load(x + at);
            store(y + at, added);
            total += added;
        }
        store(z + 2 * i, total);
    }
}
