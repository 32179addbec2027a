#[autotune(
    configs = [Config { B: 256 }, Config { B: 512 }],
    records = ["tuned/h200.json", "/usr/share/tuned.json"],
    verify(reference::scale, rtol = 1e-2),
)]
#[kernel(T = f32)]
fn verified<T: Float, const B: usize>(x: Ptr<T>, y: PtrMut<T>, by: T, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, by * load(x + at, mask = at < n), mask = at < n);
}
