//! Masks and integers that are negated once, twice and three times.
//! x: any 100
//! y: zeros 400
//! n: 0, 50, 100
fn kernel(x: Ptr<u32>, y: PtrMut<u32>, n: usize) {
    let lanes = arange(0, 128);
    let v = load(x + lanes, mask = lanes < 100);
    let once = !(lanes < n);
    let is_there = lanes < 100;
    store(y + lanes, v, mask = !once & is_there);
    store(y + 100 + lanes, v, mask = !(!once) & is_there);
    store(y + 200 + lanes, !(!v), mask = is_there);
    store(y + 300 + lanes, !(!(!v)), mask = is_there);
}

fn reference(x: Ptr<u32>, y: PtrMut<u32>, n: usize) {
    for i in 0..100 {
        let v = load(x + i);
        if i < n {
            store(y + i, v);
        } else {
            store(y + 100 + i, v);
        }
        store(y + 200 + i, v);
        store(y + 300 + i, 4294967295 - v);
    }
}
