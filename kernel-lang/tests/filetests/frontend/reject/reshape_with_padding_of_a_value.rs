#[kernel(N = [64, 96])]
fn k<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y + arange(0, 32), sum(v.reshape([32, N / 32]), axis = 1));
}
