#[kernel]
fn reductions<T: Number, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>, z: PtrMut<i64>, a: T) {
    let rows = arange(0, M);
    let at = rows[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = load(x + at);
    store(y + rows, v.sum(axis = 1) + v.prod(axis = -1));
    store(y + arange(0, N), max(v, axis = 0, propagate_nan = true) - v.min(axis = 0));
    store(y, sum(v));
    store(y + at, v - v.max(axis = 1, keep_dims = true) + sum(v, keep_dims = true));
    store(z + rows, argmax(v, axis = 1) + xor_sum(at, axis = 1));
    store(z, argmin(v));
    if any(v == a) && all(v != a, axis = 0).any() {
        store(z, 1);
    }
    let largest = reduce(v, 1, |p, q| max(p, q * 1));
    store(y + rows, largest);
    let (best, index) = reduce((v, at), 1, |(p, i), (q, j)| {
        let better = q > p;
        (select(better, q, p), select(better, j, i))
    });
    store(y + index, best + a);
    let scaled = reduce((v,), 0, |s, t| (s.0 + t.0,));
    store(y + arange(0, N), scaled.0);
}
