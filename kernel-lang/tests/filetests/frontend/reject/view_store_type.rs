#[kernel]
fn k(y: ViewMut<f32, 1>) {
    y.store([0], arange(0, 8));
}
