//! A row is loaded, overwritten and summed up; behind the sum, the elements from before are used together with weights, of which there are fewer.
//! x: any 512
//! w: any 500
//! y: zeros 512
//! n: 0, 1, 300, 511, 512
fn kernel(x: PtrMut<i32>, w: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 512);
    let mask = lanes < n;
    let tile = load(x + lanes, mask = mask);
    store(x + lanes, tile + 1, mask = mask);
    let total = sum(tile);
    store(y + lanes, tile * total + load(w + lanes, mask = mask), mask = mask);
}

fn reference(x: PtrMut<i32>, w: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    let mut total = 0;
    for i in 0..n {
        total += load(x + i);
    }
    for i in 0..n {
        store(y + i, load(x + i) * total + load(w + i));
        store(x + i, load(x + i) + 1);
    }
}
