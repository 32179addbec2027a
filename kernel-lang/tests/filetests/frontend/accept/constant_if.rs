#[kernel(N = 64, BIAS = [true, false])]
fn constant_if<T: Float, const N: usize, const BIAS: bool>(x: Ptr<T>, bias: Ptr<T>, y: PtrMut<T>) {
    let offsets = arange(0, N);
    let mut v = load(x + offsets);
    if BIAS {
        v += load(bias + offsets);
    }
    let w = if N > 32 && BIAS { v * v } else { v };
    store(y + offsets, w);
}
