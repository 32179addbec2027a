#[kernel]
fn k<const N: usize, const K: usize>(x: Ptr<i32>, y: PtrMut<i32>) {
    let v = load(x + arange(0, 96));
    store(y + arange(0, 96), flip(sort(v)));
    store(y + arange(0, 4), topk(v, 4));
    store(y + arange(0, 3), topk(v, 3));
    store(y + arange(0, 64), gather(v, arange(0, 64), 0));
    store(y + arange(0, 100), histogram(v, 100));
    // Whether a run of `K` can be taken is known when the kernel is specialised.
    store(y + arange(0, K), topk(load(x + arange(0, N)), K));
}
