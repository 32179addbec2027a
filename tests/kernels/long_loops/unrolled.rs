//! Loops of which several iterations stand behind one another: the number of them is no power of two, or does not divide the iterations.
//! y: zeros 200
//! z: zeros 200
//! n: 10, 12, 1, 0, 17, 35
//! s: 1, 2, 7, 1, 3, 5
fn kernel(y: PtrMut<i64>, z: PtrMut<i64>, n: usize, s: usize) {
    let mut v = 1;
    for i in range(2, n, 1, unroll = 3) {
        store(y + i, v);
        v = v * 3 + i;
    }
    for i in range(1, n, s, unroll = 5) {
        store(z + i, v);
        v = v * 3 + i;
    }
}

fn reference(y: PtrMut<i64>, z: PtrMut<i64>, n: usize, s: usize) {
    let mut v = 1;
    for i in 0..n {
        if i >= 2 {
            store(y + i, v);
            v = v * 3 + i;
        }
    }
    for i in 1..n {
        if (i - 1) % s == 0 {
            store(z + i, v);
            v = v * 3 + i;
        }
    }
}
