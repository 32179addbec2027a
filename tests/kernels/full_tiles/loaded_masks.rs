//! A mask that was loaded may differ along a wide access, wherever the two tensors begin.
//! m: whole 300
//! y: zeros 300
//! a: 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 60
//! b: 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 60
fn kernel(m: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    let lanes = arange(0, 256);
    let v = load(m + a + lanes);
    store(y + b + lanes, v, mask = v > 0);
}

fn reference(m: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    for i in 0..256 {
        let v = load(m + a + i);
        if v > 0 {
            store(y + b + i, v);
        }
    }
}
