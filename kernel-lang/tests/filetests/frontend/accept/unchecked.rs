#[kernel(N = 64, unchecked, num_warps = 8)]
fn unchecked_copy<T: Element, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let offsets = program_id(0) * num_programs(1) * N + program_id(2) + arange(0, N);
    store(y + offsets, load(x + offsets));
}
