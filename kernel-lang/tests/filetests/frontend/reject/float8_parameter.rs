#[kernel(N = 64)]
fn k<const N: usize>(x: Ptr<float8e4nv>, y: PtrMut<F8E5M2>, z: fp8) {}
