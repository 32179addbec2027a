//! A program has loaded a tile when it releases it, so that the other one may store there.
//! x: whole 64
//! flag: zeros 1
//! y: zeros 64
//! grid: 2
//! warps: 1
fn kernel(x: PtrMut<i32>, flag: PtrMut<i32>, y: PtrMut<i32>) {
    let lanes = arange(0, 64);
    if program_id(0) == 0 {
        let v = load(x + lanes);
        atomic_store(flag, 1, sem = "release");
        store(y + lanes, v);
    } else {
        while atomic_load(flag, sem = "acquire") == 0 {}
        store(x + 63 - lanes, lanes as i32);
    }
}
