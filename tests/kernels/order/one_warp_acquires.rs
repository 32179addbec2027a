//! The program has one warp, one thread of which acquires; the other threads may not load before it has.
//! x: zeros 64
//! flag: zeros 4
//! y: zeros 64
//! grid: 2
//! warps: 1
fn kernel(x: PtrMut<i32>, flag: PtrMut<i32>, y: PtrMut<i32>) {
    let lanes = arange(0, 64);
    if atomic_add(flag + 1, 1, sem = "relaxed") == 0 {
        store(x + lanes, lanes as i32);
        atomic_store(flag, 1);
    } else {
        while atomic_load(flag, sem = "acquire") == 0 {}
        store(y + lanes, load(x + 63 - lanes));
    }
}
