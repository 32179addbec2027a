#[kernel]
fn k(x: View<f32, 1>, y: PtrMut<f32>) {
    store(y, load(x));
}
