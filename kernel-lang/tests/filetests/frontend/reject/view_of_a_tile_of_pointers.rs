#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>) {
    let rows = view(x + arange(0, 8), [4], [1]);
    store(y + arange(0, 4), rows.load([0], [4]));
}
