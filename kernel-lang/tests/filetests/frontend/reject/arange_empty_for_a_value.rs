#[kernel(BLOCK_SIZE = [64, 0, 128])]
fn k<T: Float, const BLOCK_SIZE: usize>(y: PtrMut<T>) {
    store(y + arange(0, BLOCK_SIZE), 1.0);
}
