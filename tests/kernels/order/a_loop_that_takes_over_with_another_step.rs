//! A loop begins where another one with a larger step ends; it loads, in another layout, what the last iteration has stored.
//! x: any 3072
//! y: any 4096
//! z: zeros 8
//! m: 2
//! n: 1025
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, m: usize, n: usize) {
    let at = 2 * (128 * arange(0, 4).col() + arange(0, 128).row());
    let middle = 512 * m;
    for i in range(0, middle, 700) {
        if i > 0 {
            store(z + 1, 7);
        }
        store(y + 2 * i + at, load(x + 2 * i + at));
    }
    for i in range(middle, n, 512) {
        store(z + 2 * arange(0, 4), sum(load(y + 2 * (i - 324) + at), axis = 1));
    }
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, m: usize, n: usize) {
    store(z + 1, 7);
    for i in 0..512 {
        store(y + 2 * i, load(x + 2 * i));
        store(y + 1400 + 2 * i, load(x + 1400 + 2 * i));
    }
    for i in 0..4 {
        let mut total = 0;
        for j in 0..128 {
            total += load(x + 1400 + 256 * i + 2 * j);
        }
        store(z + 2 * i, total);
    }
}
