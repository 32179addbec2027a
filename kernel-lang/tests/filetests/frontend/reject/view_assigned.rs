#[kernel]
fn k(x: View<f32, 1>, y: View<f32, 1>, z: ViewMut<f32, 1>, n: usize) {
    let mut a = x;
    if n > 0 {
        a = y;
    }
    z.store([0], a.load([0], [4]));
}
