#[kernel]
fn k(y: PtrMut<f32>) {
    store(y, extent(arange(0, 8), 1) as f32);
    store(y, extent(1.0, 0) as f32);
    store(y, rank((1, 2)) as f32);
}
