//! The indices of a masked tile count from 64 on.
//! x: any 2800
//! y: zeros 2800
//! n: 0, 65, 200, 1600, 2111
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    let at = arange(64, 2112);
    store(y + at, load(x + at, mask = at < n) + at as i32, mask = at < n);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    for i in 64..n {
        store(y + i, load(x + i) + i as i32);
    }
}
