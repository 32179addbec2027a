#[kernel(N = [64], T = f32)]
pub(crate) fn constant_before_type<const N: usize, T: Float, const M: u32>(x: Ptr<T>, mut y: PtrMut<T>, s: T) {
    y += M;
    store(y + arange(-8, N - 8), load(x) * s, mask = 0 <= arange(0, N) && arange(0, N) < M)
}
