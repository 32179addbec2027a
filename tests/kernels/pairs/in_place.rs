//! The order of accesses to one tensor counts: a load between two stores reads the element of the first store, and a store between two loads
//! writes the element of the second load.
//! x: counting 2048
//! y: counting 1024
//! z: zeros 512
//! n: 256, 200
fn kernel(x: PtrMut<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let i = arange(0, 256);
    let mask = i < n;
    store(x + 2 * i, 7 + i as i32, mask = mask);
    let seen = load(x + 2 * i, mask = mask);
    store(x + 2 * i + 1, 3 * seen, mask = mask);
    let low = load(y + 2 * i, mask = mask);
    store(y + 2 * i + 1, low + 5, mask = mask);
    let high = load(y + 2 * i + 1, mask = mask);
    store(z + 2 * i, high, mask = mask);
    store(z + 2 * i + 1, low, mask = mask);
}

fn reference(x: PtrMut<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    for i in 0..n {
        store(x + 2 * i, 7 + i as i32);
        store(x + 2 * i + 1, 3 * load(x + 2 * i));
        let low = load(y + 2 * i);
        store(y + 2 * i + 1, low + 5);
        store(z + 2 * i, low + 5);
        store(z + 2 * i + 1, low);
    }
}
