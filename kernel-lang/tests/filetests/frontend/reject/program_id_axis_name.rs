#[kernel]
fn k(y: PtrMut<f32>) {
    store(y + program_id(axis = 0), 1.0);
}
