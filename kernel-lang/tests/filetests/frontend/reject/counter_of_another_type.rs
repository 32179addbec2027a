#[kernel]
fn k(y: PtrMut<i32>, n: usize) {
    let mut count = 0;
    for i in 0..n {
        count += 1;
    }
    store(y, count);
}
