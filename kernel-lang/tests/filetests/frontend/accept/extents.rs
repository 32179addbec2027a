#[kernel(N = 64)]
fn k<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    static_assert!(rank(program_id(0)) == 0 && numel(1.0) == 1);
    let block = load((x + arange(0, N))[(.., None)] + arange(0, 8)[(None, ..)]);
    static_assert!(rank(block) == 2 && extent(block, -1) == 8 && numel(block) == 8 * N);
    store(y + arange(0, extent(block, 0)), sum(block, axis = 1) / extent(block, 1) as T);
}
