#[device]
fn first(x: Ptr<f32>, n: usize) -> usize {
    for i in 0..n {
        if load(x + i) > 0.0 {
            return i;
        }
    }
    n
}

#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<i64>, n: usize) {
    store(y, first(x, n));
}
