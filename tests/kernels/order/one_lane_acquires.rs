//! Only one lane acquires, and no other thread may load before it has.
//! x: zeros 256
//! flag: zeros 4
//! y: zeros 256
//! z: zeros 256
//! grid: 2
fn kernel(x: PtrMut<i32>, flag: PtrMut<i32>, y: PtrMut<i32>, z: PtrMut<i32>) {
    let lanes = arange(0, 256);
    if atomic_add(flag + 1, 1, sem = "relaxed") == 0 {
        store(x + lanes, lanes as i32);
        atomic_store(flag, 1);
    } else {
        while atomic_load(flag, sem = "relaxed") == 0 {}
        store(y + lanes, atomic_load(flag + lanes, mask = lanes == 0, sem = "acquire"));
        store(z + lanes, load(x + 255 - lanes));
    }
}
