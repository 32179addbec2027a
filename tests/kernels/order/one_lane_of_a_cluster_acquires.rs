//! Only one lane of a cluster acquires, and no thread of another CTA may load before it has.
//! x: zeros 512
//! flag: zeros 1024
//! y: zeros 512
//! z: zeros 512
//! grid: 2
//! ctas: 2
fn kernel(x: PtrMut<i32>, flag: PtrMut<i32>, y: PtrMut<i32>, z: PtrMut<i32>) {
    let lanes = arange(0, 512);
    let is_first = lanes == 0;
    if max(atomic_add(flag + 512 + lanes, 1, mask = is_first, sem = "relaxed")) == 0 {
        store(x + lanes, lanes as i32);
        atomic_store(flag + lanes, 1, mask = is_first);
    } else {
        while max(atomic_load(flag + lanes, mask = is_first, sem = "relaxed")) == 0 {}
        store(y + lanes, atomic_load(flag + lanes, mask = is_first, sem = "acquire"));
        store(z + lanes, load(x + 511 - lanes));
    }
}
