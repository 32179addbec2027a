//! Few iterations pass a barrier before they load what the one before has stored in another layout.
//! x: any 4096
//! y: any 1024
//! z: zeros 32
//! n: 1, 2, 4
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let at = 2 * (128 * arange(0, 4).col() + arange(0, 128).row());
    for k in 0..n {
        if k == 3 {
            debug_barrier();
        }
        store(z + 8 * k + 2 * arange(0, 4), sum(load(y + at), axis = 1));
        store(y + at, load(x + 1024 * k + at));
    }
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for k in 0..n {
        for i in 0..4 {
            let mut total = 0;
            for j in 0..128 {
                total += load(y + 256 * i + 2 * j);
                store(y + 256 * i + 2 * j, load(x + 1024 * k + 256 * i + 2 * j));
            }
            store(z + 8 * k + 2 * i, total);
        }
    }
}
