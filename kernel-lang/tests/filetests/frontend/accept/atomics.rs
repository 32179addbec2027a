#[kernel(N = 64, T = [i32, f32])]
fn atomics<T: Number, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, counts: PtrMut<i32>, t: PtrMut<T>, flag: Ptr<bool>, n: usize) {
    let offsets = arange(0, N);
    let mask = offsets < n;
    let v = load(x + offsets, mask = mask);
    atomic_add(y + offsets, v, mask = mask, sem = "relaxed", scope = "cta");
    let old = atomic_max(y, 1.0);
    atomic_min(y + offsets, old, mask = n > 3);
    let index = atomic_add(counts + (offsets[(.., None)] + offsets[(None, ..)]), 1, sem = "acquire");
    while atomic_cas(counts, 0, 1, sem = "acq_rel") == 1 {}
    debug_barrier();
    atomic_xchg(counts, 0, sem = "release", scope = "sys");
    atomic_or(counts + 1, 3);
    atomic_and(counts + 1, -2);
    atomic_xor(counts + 1, sum(index));
    if atomic_load(flag) && atomic_load(flag + n, sem = "relaxed", mask = n > 0) {
        atomic_store(y + offsets, 0, mask = mask);
    }
    atomic_add(t + offsets, 1);
}
