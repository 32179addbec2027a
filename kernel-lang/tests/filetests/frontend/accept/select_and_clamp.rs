#[kernel(N = 64)]
fn select_and_clamp<T: Int, const N: usize>(x: Ptr<T>, y: PtrMut<T>, on: bool, lo: T, hi: T) {
    let offsets = arange(0, N);
    let v = load(x + offsets);
    let a = select(v > 3, v, 0);
    let b = select(on, a, v);
    let c = select(offsets == 5, lo, hi);
    let d = select(on, lo, 7);
    store(y + offsets, clamp(b, lo, hi) + c + d + abs(v));
}
