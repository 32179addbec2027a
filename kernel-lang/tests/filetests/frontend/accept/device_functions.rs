/// Gaussian error linear unit.
#[device]
fn gelu<T: Float>(x: Value<T>) -> Value<T> {
    let wide = x as f32;
    (0.5 * wide * (1.0 + erf(wide * std::f32::consts::FRAC_1_SQRT_2))) as T
}

#[device]
fn bounds<const N: usize>(n: usize) -> (Value<usize>, Value<bool>) {
    let offsets = program_id(0) * N + arange(0, N);
    (offsets, offsets < n)
}

mod scaling {
    #[device]
    pub fn by<T: Float>(x: Value<T>, #[option(2.0)] factor: T) -> Value<T> {
        clip(x * factor)
    }

    #[device]
    fn clip<T: Float>(x: Value<T>) -> Value<T> {
        super::limit(x, 0.0, 6.0)
    }
}

#[device]
fn limit<T: Number>(x: Value<T>, low: T, high: T) -> Value<T> {
    min(max(x, low), high)
}

#[device]
fn write<T: Element>(y: PtrMut<T>, at: Value<usize>, value: Value<T>, #[option] mask: Value<bool>) {
    store(y + at, value, mask = mask);
}

#[kernel(N = 64)]
fn k<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let (offsets, inside) = bounds::<N>(n);
    let v = gelu(load(x + offsets, mask = inside));
    write(y, offsets, scaling::by(v), mask = inside);
    write(y, n, scaling::by::<T>(crate::limit(v.max(), 0.0, 1.0), factor = 3.0));
}
