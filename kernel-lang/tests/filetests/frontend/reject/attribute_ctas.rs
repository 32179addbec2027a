#[kernel(num_ctas = 3, maxnreg = 8)]
fn k(y: PtrMut<f32>) {
    store(y, 1.0);
}
