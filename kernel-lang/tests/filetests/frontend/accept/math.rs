#[kernel(N = 64)]
fn math<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, s: T) {
    let offsets = arange(0, N);
    let v = load(x + offsets);
    let a = exp(v) + exp2(v) + log(v) + log2(v) + sqrt(v) + rsqrt(v) + sin(v) + cos(v) + tan(v) + tanh(v);
    let b = sigmoid(v) + erf(v) + floor(v) + ceil(v) + round(v) + rint(v) + trunc(v) + abs(v);
    let c = min(v, s) + max(v, 0.0) + clamp(v, -1.0, s) + fma(v, s, 1.0);
    let d = v.exp().min(a).clamp(0.0, 6.0).fma(s, b) + s.sqrt();
    store(y + offsets, a + b + c + d);
}
