#[kernel]
fn k(y: PtrMut<i32>, n: usize) {
    let m = n > 3;
    store(y, (m + m) as i32);
}
