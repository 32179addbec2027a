#[kernel(N = 64)]
fn memory_options<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, flags: Ptr<bool>, n: usize, on: bool) {
    let offsets = arange(0, N);
    let a = load(x + offsets, mask = on, other = 1.0, cache = "cg", evict = "evict_first");
    let b = load(x + offsets, mask = offsets < n, other = f32::NEG_INFINITY, volatile = true);
    let c = load(y + offsets, mask = load(flags + offsets), other = b, cache = "ca", evict = "no_allocate");
    let d = load(x);
    let e = load(x + n, mask = on, other = d);
    store(y + offsets, a + b + c + d + e, mask = on & (offsets < n), cache = "wt", evict = "evict_last");
    store(y, d, cache = "cs");
    store(y + offsets, 0, mask = true);
}
