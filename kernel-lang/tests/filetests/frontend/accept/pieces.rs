#[kernel]
fn pieces<T: Number, const N: usize, const K: usize>(x: Ptr<T>, y: PtrMut<T>, a: T) {
    let at = arange(0, N);
    let v = load(x + at);
    let w = full_like(v, a) + zeros_like(v) - full_like(v, 3);
    let both = join(v, w);
    let (first, second) = both.split();
    store(y + arange(0, 2 * N), interleave(first, second));
    store(y + arange(0, 2 * N), cat(v, w));
    let rows = cat(v.row(), w.col().trans(), axis = -1);
    store(y + arange(0, 2 * N), rows.squeeze(0).flip());
    store(y + at, flip(both, axis = 1).reshape([2, N]).sum(axis = 0));
    let (p, q) = split(reshape(v, [N / K, K]));
    store(y + arange(0, N / K), select(p < q, p, ones::<T>([N / K])));
    let (r, s) = split(join(a, 2));
    store(y, r * s);
}
