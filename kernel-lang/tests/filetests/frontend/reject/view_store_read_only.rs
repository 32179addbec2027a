#[kernel]
fn k(x: View<f32, 1>) {
    x.store([0], zeros::<f32>([8]));
}
