#[kernel]
fn k(x: View<f32, 1>, z: ViewMut<f32, 1>) {
    z.store([0], x);
}
