//! So many branches that their labels need three digits.
//! x: whole 70
//! y: zeros 70
//! n: 0, 5, 30
fn kernel(x: Ptr<i64>, y: PtrMut<i64>, n: usize) {
    for i in static_range(0, 70) {
        if load(x + i) < n {
            store(y + i, n + i);
        } else {
            store(y + i, -i);
        }
    }
}

fn reference(x: Ptr<i64>, y: PtrMut<i64>, n: usize) {
    for i in 0..70 {
        store(y + i, select(load(x + i) < n, n + i, -i));
    }
}
