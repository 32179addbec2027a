#[kernel(S = 3)]
fn k<const S: usize>(x: PtrMut<i32>) {
    let lanes = arange(0, 32);
    store(x + lanes, load(x + lanes) << (S - 4));
    store(x + lanes, load(x + lanes) << (S - 3));
}
