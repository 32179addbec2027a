#[kernel]
fn k(y: PtrMut<i32>, a: i32, b: i32) {
    if a && b {
        store(y, 1);
    }
}
