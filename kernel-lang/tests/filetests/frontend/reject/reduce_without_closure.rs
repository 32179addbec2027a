#[kernel]
fn k<const M: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let rows = arange(0, M);
    let columns = arange(0, N);
    let at = rows[(.., None)] * n + columns[(None, ..)];
    let v = load(x + at);
    store(y + rows, reduce(v, 1, n));
}
