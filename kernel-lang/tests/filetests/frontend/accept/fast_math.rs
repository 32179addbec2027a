#[kernel(N = 64)]
fn fast_math<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, s: T) {
    let at = arange(0, N);
    let v = load(x + at);
    let a = fast_exp2(v) + fast_log2(v) + v.fast_sqrt() + fast_sin(v) + fast_cos(v) + fast_tanh(v);
    store(y + at, fast_div(a, s).copysign(v) + copysign(1.0, v));
}
