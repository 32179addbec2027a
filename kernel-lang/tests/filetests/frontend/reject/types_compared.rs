#[kernel]
fn k<T: Float>(x: Ptr<T>, y: PtrMut<f32>) {
    if T == 1.0 {
        store(y, 0.0);
    }
    if T < f32 {
        store(y, 0.0);
    }
}
