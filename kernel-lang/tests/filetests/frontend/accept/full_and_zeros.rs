#[kernel(N = 64)]
fn full_and_zeros<T: Number, const N: usize>(y: PtrMut<T>, z: PtrMut<f32>, b: PtrMut<bool>, a: f32, s: T) {
    let offsets = arange(0, N);
    store(y + offsets, zeros::<T>([N]) + full([N], s) + full::<T>([N], 3));
    store(z + offsets, full([N], a * 2.0) + full([N], 1.5f32) + zeros::<f32>([N]));
    store(b + offsets, zeros::<bool>([N]) | full([N], true));
}
