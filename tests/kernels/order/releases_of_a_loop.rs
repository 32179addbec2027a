//! Each iteration releases what earlier ones stored, although its own store comes behind its release.
//! x: zeros 192
//! flag: zeros 1
//! y: zeros 64
//! grid: 2
//! warps: 1
fn kernel(x: PtrMut<i32>, flag: PtrMut<i32>, y: PtrMut<i32>) {
    let lanes = arange(0, 64);
    if program_id(0) == 0 {
        for i in 0..3 {
            atomic_store(flag, i as i32, sem = "release");
            store(x + 64 * i + lanes, lanes as i32);
        }
    } else {
        while atomic_load(flag, sem = "acquire") < 2 {}
        store(y + lanes, load(x + 64 + 63 - lanes));
    }
}
