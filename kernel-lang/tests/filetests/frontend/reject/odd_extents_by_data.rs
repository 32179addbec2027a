#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<i32>) {
    let v = load(x + arange(0, 96));
    store(y + arange(0, 96), sort(v));
    store(y + arange(0, 4), topk(v, 4));
    store(y + arange(0, 3), topk(load(x + arange(0, 64)), 3));
    store(y + arange(0, 64), gather(v, arange(0, 64), 0));
    store(y + arange(0, 64), histogram(v, 64));
}
