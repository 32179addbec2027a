#[kernel(N = 64)]
fn bits<T: Int, const N: usize>(x: Ptr<T>, y: PtrMut<T>, u: Ptr<u32>, v: PtrMut<u32>) {
    let at = arange(0, N);
    let a = load(x + at);
    store(y + at, popc(a) + a.clz() + brev(a));
    let b = load(u + at);
    store(v + at, umulhi(b, 0xcccc_cccd) >> 3 ^ b.umulhi(b));
}
