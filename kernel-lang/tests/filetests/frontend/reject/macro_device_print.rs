#[kernel]
fn k(y: PtrMut<f32>) {
    device_print!("here");
}
