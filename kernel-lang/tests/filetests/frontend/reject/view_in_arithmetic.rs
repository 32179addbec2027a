#[kernel]
fn k(x: View<f32, 2>, y: PtrMut<f32>) {
    store(y, x + 1);
}
