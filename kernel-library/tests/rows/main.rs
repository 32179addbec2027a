//! The kernels of this crate against `f64`, on every device there is: the CPU, a simulated GPU, and a GPU. The functions that call them are tested
//! in `functions`.

mod activations;
mod embeddings;
mod functions;
mod losses;
mod norms;
mod norms_backward;
mod optimizers;
mod positions;
mod reductions;
mod scans;
mod selections;
mod softmaxes;
mod transposes;

use approx::relative_eq;
use galatea::prelude::*;

/// The CPU, a simulated GPU, and the first GPU if there is one.
fn devices() -> Vec<Device> {
    let cuda = (Device::cuda_count() > 0).then(|| Device::cuda(0).expect("the first GPU opens"));
    [Device::cpu(), Device::sim(Target::SM_90A).expect("a simulated GPU opens")].into_iter().chain(cuda).collect()
}

/// Numbers of columns: one, odd ones, a whole block, more than a block.
const COLUMNS: [usize; 7] = [1, 7, 256, 257, 781, 1000, 2056];
const ROWS: usize = 5;

/// An element as the tests need it.
trait Real: Float {
    /// How far a result of a few roundings in `f32` and one of its own may be off, relative to the largest part of its sum.
    const TOLERANCE: f64;
    fn near(value: f64) -> Self;
    fn wide(self) -> f64;
}

macro_rules! reals {
    ($($ty:ty: $tolerance:expr, $near:expr;)*) => {$(
        impl Real for $ty {
            const TOLERANCE: f64 = $tolerance;
            fn near(value: f64) -> $ty {
                $near(value)
            }
            fn wide(self) -> f64 {
                self.into()
            }
        }
    )*};
}
reals! {
    f32: 4e-6, |value| value as f32;
    f16: 6e-4, f16::from_f64;
    bf16: 5e-3, bf16::from_f64;
}

/// Numbers from `-scale` to `scale`, by a linear congruential generator.
fn numbers<T: Real>(len: usize, scale: f64, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / 2f64.powi(53)
    };
    (0..len).map(|_| T::near((2.0 * next() - 1.0) * scale)).collect()
}

/// Holds results to a reference, of the given size where they are small.
#[track_caller]
fn check<T: Real>(device: Device, got: &[T], size: f64, want: impl Fn(usize) -> f64) {
    for (i, got) in got.iter().enumerate() {
        let (got, want) = (got.wide(), want(i));
        let is_near = relative_eq!(got, want, epsilon = T::TOLERANCE * size, max_relative = T::TOLERANCE);
        let fits = is_near || (got.is_nan() && want.is_nan());
        assert!(fits, "{} on {device}: element {i} is {got:e}, not {want:e}", T::DTYPE);
    }
}
