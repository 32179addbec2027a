#[kernel]
fn k(y: PtrMut<f32>) {
    store(y + program_id(3), 1.0);
}
