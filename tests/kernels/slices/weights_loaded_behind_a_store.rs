//! A row is summed up, and behind the sum a store changes the weights before they are loaded: only loads in front of the sum are issued together there.
//! warps: 1
//! x: any 1024
//! w: any 1024
//! y: zeros 1024
fn kernel(x: Ptr<i32>, w: PtrMut<i32>, y: PtrMut<i32>) {
    let lanes = arange(0, 1024);
    let row = load(x + lanes);
    let total = sum(row);
    store(w + lanes, row ^ total);
    let weight = load(w + lanes);
    store(y + lanes, row * total + weight * sum(weight * 3));
}

fn reference(x: Ptr<i32>, w: PtrMut<i32>, y: PtrMut<i32>) {
    let (mut total, mut weights) = (0i32, 0i32);
    for i in 0..1024 {
        total += load(x + i);
    }
    for i in 0..1024 {
        store(w + i, load(x + i) ^ total);
        weights += load(w + i) * 3;
    }
    for i in 0..1024 {
        store(y + i, load(x + i) * total + load(w + i) * weights);
    }
}
