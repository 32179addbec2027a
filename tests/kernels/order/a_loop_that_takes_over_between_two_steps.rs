//! A loop begins where another one ends, which is not a whole number of steps; it loads, in another layout, what the last iteration has stored.
//! x: any 1536
//! y: any 4096
//! z: zeros 8
//! m: 700
//! n: 701
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, m: usize, n: usize) {
    let at = 128 * arange(0, 4).col() + arange(0, 128).row();
    for i in range(0, m, 512) {
        store(y + 2 * (i + at), load(x + i + at));
    }
    for i in range(m, n, 512) {
        store(z + 2 * arange(0, 4), sum(load(y + 2 * (i - 188 + at)), axis = 1));
    }
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, m: usize, n: usize) {
    for i in 0..1024 {
        store(y + 2 * i, load(x + i));
    }
    for i in 0..4 {
        let mut total = 0;
        for j in 0..128 {
            total += load(y + 2 * (512 + 128 * i + j));
        }
        store(z + 2 * i, total);
    }
}
