//! Device functions in a crate of their own: kernels of other crates call them.

use tiles::prelude::*;

mod smooth {
    use tiles::prelude::*;

    /// `x * sigmoid(x)`, computed in `f32`.
    #[device(crate = ::tiles)]
    pub fn silu<T: Float>(x: Value<T>) -> Value<T> {
        let wide = x as f32;
        (wide * super::logistic_of(wide)) as T
    }
}

pub use smooth::silu;

/// Not seen outside of the crate, and part of what is.
#[device(crate = ::tiles)]
fn logistic_of(x: Value<f32>) -> Value<f32> {
    1.0 / (1.0 + exp(-x))
}

/// The offsets of this program's `N` elements, and which of them there are.
#[device(crate = ::tiles)]
pub fn window<const N: usize>(n: usize) -> (Value<usize>, Value<bool>) {
    let offsets = program_id(0) * N + arange(0, N);
    (offsets, offsets < n)
}

/// Loads, applies [`silu`] twice, and stores.
#[device(crate = ::tiles)]
pub fn apply<T: Float>(x: Ptr<T>, y: PtrMut<T>, offsets: Value<usize>, #[option] mask: Value<bool>) {
    let once = silu(load(x + offsets, mask = mask));
    store(y + offsets, smooth::silu(once), mask = mask);
}
