#[kernel]
fn k(y: PtrMut<i32>) {
    store(y, cdiv(1.0, 2));
}
