#[kernel(N = 64)]
fn k<const N: usize>(y: PtrMut<f32>) {
    let z = zeros::<f32>([N, N]);
}
