#[kernel]
fn k(y: PtrMut<f32>) {
    const SCALE: f32 = 2.0;
    store(y, SCALE);
}
