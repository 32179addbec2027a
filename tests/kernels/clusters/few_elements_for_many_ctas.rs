//! Several CTAs of a cluster hold the same elements, but only one thread may add to each of them.
//! y: whole 64
//! z: zeros 64
//! n: 1, 3, 64
//! grid: 3
//! ctas: 4
fn kernel(y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 64);
    let few = arange(0, 2);
    atomic_add(y + few, 1, sem = "relaxed");
    atomic_add(z + lanes, 1 + lanes as i32, mask = lanes < n, sem = "relaxed");
}

fn reference(y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for i in 0..2 {
        atomic_add(y + i, 1);
    }
    for i in 0..n {
        atomic_add(z + i, 1 + i as i32);
    }
}
