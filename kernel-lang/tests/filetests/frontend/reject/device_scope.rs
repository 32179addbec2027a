#[device]
fn helper(x: f32) -> f32 {
    x * factor + load(y) + N
}

#[kernel(N = 4)]
fn k<const N: usize>(y: PtrMut<f32>) {
    let factor = 2.0;
    store(y, helper(load(y)));
}
