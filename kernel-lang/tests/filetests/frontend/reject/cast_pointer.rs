#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<i64>) {
    store(y, x as i64);
}
