//! A `while` body ends with a barrier, but the test runs after it: the code behind the loop must not overwrite the shared memory that the test still reads.
//! x: whole 256
//! y: zeros 256
//! z: zeros 2
//! n: 0, 1, 3
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 256);
    let mut v = load(x + lanes) + (n as i32) * 10;
    while any(v > 5) {
        v -= 10;
        debug_barrier();
    }
    store(z, sum(v));
}
