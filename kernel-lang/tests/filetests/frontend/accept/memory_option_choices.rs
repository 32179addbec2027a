#[device]
fn read<const STREAM: bool>(x: Ptr<f32>, at: Value<i64>) -> Value<f32> {
    load(x + at, evict = if STREAM { "evict_first" } else { "evict_normal" })
}

#[kernel(N = 64, KEEP = true)]
fn memory_option_choices<const N: usize, const KEEP: bool>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, N);
    let a = load(x + at, evict = if KEEP { "evict_last" } else { "evict_normal" });
    let b = load(x, cache = if N > 32 { "cg" } else { "ca" }, evict = if KEEP { "evict_last" } else if N == 16 { "no_allocate" } else { "evict_first" });
    let c = read::<true>(x, at) * read::<KEEP>(x, at);
    store(y + at, a + b + c, cache = if !KEEP { "wt" } else { "wb" });
}
