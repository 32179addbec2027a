//! An index in which a loaded number cancels out: neither the load nor its address is computed.
//! p: any 8
//! y: zeros 128
//! n: 0, 100, 128
fn kernel(p: Ptr<i64>, y: PtrMut<i32>, n: usize) {
    let at = program_id(0) + n % 5;
    let v = load(p + at);
    let lanes = (v + arange(0, 128)) - v;
    store(y + lanes, full::<i32>([128], 7), mask = lanes < n);
}

fn reference(p: Ptr<i64>, y: PtrMut<i32>, n: usize) {
    for i in 0..n {
        store(y + i, 7);
    }
}
