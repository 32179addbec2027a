#[kernel(N = 64)]
fn lookups<T: Number, const N: usize>(x: Ptr<T>, y: PtrMut<T>, index: Ptr<u8>, counts: PtrMut<i32>, n: usize) {
    let offsets = arange(0, N);
    let v = load(x + offsets);
    let at = load(index + offsets);
    let picked = gather(v, at, 0) + v.gather(N - 1 - offsets, -1);
    store(counts + offsets, histogram(at, N, mask = offsets < n) + histogram(at, N));
    store(y + offsets, sort(picked));
    let matrix = v[(.., None)] + v[(None, ..)];
    store(y + (offsets * N)[(.., None)] + offsets[(None, ..)], matrix.sort(axis = 0, descending = true));
    store(y + arange(0, 8), topk(v, 8));
    store(y + (arange(0, 8) * N)[(.., None)] + offsets[(None, ..)], topk(matrix, 8, axis = 0));
}
