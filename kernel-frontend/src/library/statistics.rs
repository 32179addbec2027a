//! Means, variances, softmax: in `f64` for `f64`, in `f32` for all other floats, rounded to the type once at the end.

/// The sum of the elements over how many they are.
pub fn mean<T: Float>(x: Value<T>, #[option] axis: isize, #[option(false)] keep_dims: bool) -> Value<T> {
    if T == f64 {
        average(x as f64, axis = axis, keep_dims = keep_dims) as T
    } else {
        average(x as f32, axis = axis, keep_dims = keep_dims) as T
    }
}

/// The mean of the squared distances from the mean, over `correction` fewer than there are elements.
pub fn var<T: Float>(x: Value<T>, #[option] axis: isize, #[option(false)] keep_dims: bool, #[option(0)] correction: usize) -> Value<T> {
    if T == f64 {
        spread(x as f64, axis = axis, keep_dims = keep_dims, correction = correction) as T
    } else {
        spread(x as f32, axis = axis, keep_dims = keep_dims, correction = correction) as T
    }
}

/// `exp(x)` over the sum of them; the largest element is taken off first, so that nothing overflows.
pub fn softmax<T: Float>(x: Value<T>, #[option] axis: isize) -> Value<T> {
    if T == f64 { shares(x as f64, axis = axis) as T } else { shares(x as f32, axis = axis) as T }
}

fn average<W: Float>(x: Value<W>, #[option] axis: isize, #[option(false)] keep_dims: bool) -> Value<W> {
    let total = sum(x, axis = axis, keep_dims = keep_dims);
    total / (numel(x) / numel(total)) as W
}

/// Twice over the elements: one pass would subtract large numbers that are nearly equal.
fn spread<W: Float>(x: Value<W>, #[option] axis: isize, #[option(false)] keep_dims: bool, #[option(0)] correction: usize) -> Value<W> {
    let centred = x - average(x, axis = axis, keep_dims = true);
    let total = sum(centred * centred, axis = axis, keep_dims = keep_dims);
    total / (numel(x) / numel(total) - correction) as W
}

fn shares<W: Float>(x: Value<W>, #[option] axis: isize) -> Value<W> {
    let powers = exp(x - max(x, axis = axis, keep_dims = true));
    powers / sum(powers, axis = axis, keep_dims = true)
}
