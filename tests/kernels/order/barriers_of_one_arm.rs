//! Only one arm of a branch ends with a barrier, so behind the branch the other arm may still read its shared memory.
//! x: whole 256
//! y: zeros 1024
//! z: zeros 2
//! n: 0, 1
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 256);
    let v = load(x + lanes);
    if n == 0 {
        store(z, sum(v));
    } else {
        debug_barrier();
    }
    store(z + 1, max(v));
}
