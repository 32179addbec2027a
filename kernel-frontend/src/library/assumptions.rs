//! Assumptions: properties of numbers that the caller guarantees.

/// `x` itself.
pub fn multiple_of<I: Int>(x: Value<I>, factor: Value<I>) -> Value<I> {
    assume(x % factor == 0);
    x
}
