#[kernel]
fn k(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    y.store([0, 0], sort(x.load([0, 0], [3, 16]), axis = 1));
}
