#[kernel]
fn k(x: PtrMut<i32>) {
    let lanes = arange(0, 32);
    store(x + lanes, load(x + lanes) << -1);
    store(x + lanes, load(x + lanes) >> (2 - 4));
    store(x + lanes, load(x + lanes) + (1 << -2));
}
