#[kernel]
fn k(x: View<f32, 1>, y: PtrMut<f32>) {
    store(y + arange(0, 8), x.load([0]));
}
