#[kernel]
fn k(y: PtrMut<f32>) {
    static SCALE: f32 = 2.0;
    store(y, SCALE);
}
