//! Layers of models: values with parameters.

use galatea::Dtype;
use galatea::ops::Tensor;
use galatea::prelude::*;

use crate::ops;

/// A linear layer: `y = x * weightᵀ + bias`.
///
/// ```
/// # use galatea::Dtype;
/// # use galatea::ops::{Module, Tensor};
/// # use galatea::prelude::*;
/// use kernel_library::nn::{Linear, Seed};
///
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let layer = Linear::init(&device, Dtype::F32, 3, 2, &mut Seed(42))?;
/// let names: Vec<String> = layer.parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["weight", "bias"]);
/// let y = layer.forward(&Tensor::zeros(&device, Dtype::F32, [5, 3])?)?;
/// assert_eq!(y.dims(), [5.into(), 2.into()]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, galatea::ops::Module)]
pub struct Linear {
    /// `[columns, inner]`.
    pub weight: Tensor,
    /// `[columns]`.
    pub bias: Option<Tensor>,
}

impl Linear {
    /// A layer from `inner` to `columns` features. Weight and bias are uniform in `-1/sqrt(inner) ..= 1/sqrt(inner)`, as PyTorch initialises them, with numbers of our
    /// own generator.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or a CUDA driver error.
    pub fn init(device: &Device, dtype: Dtype, inner: usize, columns: usize, seed: &mut Seed) -> Result<Linear> {
        let bound = 1.0 / (inner.max(1) as f32).sqrt();
        let weight = uniform(device, dtype, &[columns, inner], bound, seed)?;
        Ok(Linear { weight, bias: Some(uniform(device, dtype, &[columns], bound, seed)?) })
    }

    /// The outputs for inputs `[.., inner]`.
    ///
    /// # Errors
    /// As [`ops::linear`](crate::ops::linear()).
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::linear(x, &self.weight, self.bias.as_ref())
    }
}

/// The state of a random number generator (SplitMix64, doi 10.1145/2714064.2660195). Equal seeds give equal numbers on all devices.
#[derive(Clone, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number, uniform in `-1.0..1.0`, a multiple of 2^-23.
    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// The next number of the standard normal distribution (Box and Muller, doi 10.1214/aoms/1177706645).
    pub fn normal(&mut self) -> f32 {
        // In (0, 1], so that the logarithm is finite.
        let radius = (self.bits() >> 11) as f64 + 1.0;
        let radius = (-2.0 * (radius / (1u64 << 53) as f64).ln()).sqrt();
        let angle = (self.bits() >> 11) as f64 / (1u64 << 53) as f64 * std::f64::consts::TAU;
        (radius * angle.cos()) as f32
    }
}

/// A tensor of numbers that are uniform in `-bound..bound`, rounded to the dtype.
///
/// # Errors
/// [`Error::OutOfMemory`], or a CUDA driver error.
pub fn uniform(device: &Device, dtype: Dtype, shape: &[usize], bound: f32, seed: &mut Seed) -> Result<Tensor> {
    random(device, dtype, shape, &mut || seed.uniform() * bound)
}

/// A tensor of standard normal numbers, rounded to the dtype.
///
/// # Errors
/// [`Error::OutOfMemory`], or a CUDA driver error.
pub fn normal(device: &Device, dtype: Dtype, shape: &[usize], seed: &mut Seed) -> Result<Tensor> {
    random(device, dtype, shape, &mut || seed.normal())
}

fn random(device: &Device, dtype: Dtype, shape: &[usize], next: &mut dyn FnMut() -> f32) -> Result<Tensor> {
    let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
    Tensor::from_numbers(device, dtype, shape, &numbers)
}
