#[kernel(BLOK_SIZE = [1024])]
fn k<const BLOCK_SIZE: usize>(y: PtrMut<f32>) {
    store(y + arange(0, BLOCK_SIZE), 1.0);
}
