#[kernel]
fn k(y: PtrMut<f32>) {
    let p = Point { x: 1.0, y: 2.0 };
    store(y, p.x);
}
