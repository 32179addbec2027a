#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<i32>) {
    store(y, x as i32);
}
