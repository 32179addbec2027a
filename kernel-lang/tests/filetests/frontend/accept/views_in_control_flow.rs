#[kernel]
fn views_in_control_flow<const N: usize>(x: View<f32, 1>, y: ViewMut<f32, 1>, n: usize) {
    let (a, mut b) = (x, y);
    let mut i = 0;
    while i < n {
        if i > 4 {
            b.store([i], a.load([i], [N]) + 1.0);
            b = y;
        }
        i += N;
    }
}
