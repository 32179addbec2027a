//! Classification of floats, and the lowest set bit of an integer.

pub fn isnan<T: Float>(x: Value<T>) -> Value<bool> {
    x != x
}

pub fn isinf<T: Float>(x: Value<T>) -> Value<bool> {
    abs(x) == f32::INFINITY as T
}

pub fn isfinite<T: Float>(x: Value<T>) -> Value<bool> {
    abs(x) < f32::INFINITY as T
}

/// Of 0, x ^ (x - 1) is all ones.
pub fn ffs<T: Int>(x: Value<T>) -> Value<T> {
    select(x == 0, 0, popc(x ^ (x - 1)))
}
