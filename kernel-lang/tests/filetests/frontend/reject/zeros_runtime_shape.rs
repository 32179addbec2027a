#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    let z = zeros::<f32>([n]);
}
