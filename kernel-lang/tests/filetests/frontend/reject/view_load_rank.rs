#[kernel]
fn k(x: View<f32, 2>, y: PtrMut<f32>) {
    store(y + arange(0, 8), x.load([0], [8]));
}
