#[kernel(N = [96])]
fn odd_extents<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, stride: usize) {
    let columns = arange(0, N);
    let rows = arange(0, 3);
    let v = load(x + rows[(.., None)] * stride + columns[(None, ..)]);
    let largest = v.max(axis = 1, keep_dims = true);
    store(y + rows[(.., None)] * stride + columns[(None, ..)], v - largest);
    store(y + arange(0, 96), load(x + arange(0, 96)).reshape([3, 32]).reshape([96]));
    store(y + columns, zeros::<T>([N]).reshape([N, 1]).squeeze(1));
}
