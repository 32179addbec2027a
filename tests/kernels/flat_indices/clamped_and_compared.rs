//! A float whose range is unknown, and which is beyond 32 bits, is cast to an index, and compared with the number to which it is clamped elsewhere.
//! y: zeros 1024
//! z: zeros 1024
//! w: 32, 24, 7
//! k: 2147483647, 2147483647, 100
//! by: 1000000000, 1000000000, 1000000000
fn kernel(y: PtrMut<i64>, z: PtrMut<i64>, w: usize, k: usize, by: f32) {
    let o = arange(0, 1024);
    let far = max((o % w) as f32 * by - 2000000000.0, 0.0) as i64;
    store(y + o, min(far, k));
    store(z + o, far, mask = far <= k);
}

fn reference(y: PtrMut<i64>, z: PtrMut<i64>, w: usize, k: usize, by: f32) {
    for o in 0..1024 {
        let far = max((o % w) as f32 * by - 2000000000.0, 0.0) as i64;
        store(y + o, min(far, k));
        if far <= k {
            store(z + o, far);
        }
    }
}
