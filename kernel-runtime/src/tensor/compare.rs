//! Comparison of two tensors element by element: errors, differences in ULP, and tolerances.
//!
//! `tune::verify` compares the results of configurations instead, with tolerances of its own.

use std::fmt;

use kernel_lang::dtype::Dtype;

use crate::tensor::element::{signed, value};
use crate::tensor::frontier::Frontier;
use crate::tensor::view::TensorView;
use crate::{Element, Error, Result};

/// The differences between two tensors `a` and `b` of one element type and shape. [`compare`] makes it.
///
/// `Display` writes two or three lines for the message of an assertion.
///
/// # Errors of elements
/// The absolute error of an element is `|a - b|`, and the relative error is `|a - b| / |b|`. Both are 0 if `a == b`, also for infinities and for zeros
/// of different signs. Both are infinite if `a - b` is infinite: beside an infinity, or if it overflows an `f64`. The relative error is also infinite if
/// only `b` is 0. The fields for errors leave out elements that are NaN.
///
/// The difference in ULP (units in the last place) is the number of steps from one float of the element type to the other, where one step leads to the
/// next larger or smaller float. -0 and 0 are 0 ULP apart, and the largest finite number and infinity are 1 ULP apart. Of integers and booleans it is
/// the absolute error, which is exact for every integer type.
///
/// ```
/// # use kernel_runtime::{Device, Result, compare};
/// # fn main() -> Result<()> {
/// let device = Device::cpu();
/// let comparison = compare(&device.tensor(&[2.5f32, -0.0])?, &device.tensor(&[2.0f32, 0.0])?)?;
/// assert_eq!((comparison.max_absolute_error, comparison.max_relative_error), (0.5, 0.25));
/// assert_eq!((comparison.differing, comparison.max_ulp), (2, 1 << 21));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The element type.
    pub dtype: Dtype,
    /// The shape of both tensors.
    pub shape: Vec<usize>,
    /// Whether all elements have the same bits. -0 and 0 have different bits, and so can two NaNs.
    pub bit_equal: bool,
    /// The number of elements with different bits.
    pub differing: usize,
    /// The largest absolute error. Errors of floats are computed in `f64`. For 64-bit integers, `max_ulp` is the exact number.
    pub max_absolute_error: f64,
    /// The largest relative error.
    pub max_relative_error: f64,
    /// The largest difference in ULP; of integers and booleans, the largest absolute error.
    pub max_ulp: u64,
    /// The number of elements that are NaN in one tensor only.
    pub nan_mismatches: usize,
    /// The number of elements that are NaN in both tensors.
    pub nan_pairs: usize,
    /// The first element with different bits, in row-major order; `None` if the tensors are bit equal.
    pub first_difference: Option<FirstDifference>,
    /// Whether there is an element that no tolerance allows: one with a NaN or an infinite error.
    is_never_close: bool,
    /// The finite errors.
    frontier: Frontier,
}

/// The first element in which two tensors differ.
///
/// ```
/// # use kernel_runtime::{Device, Result, compare};
/// # fn main() -> Result<()> {
/// let device = Device::cpu();
/// let (a, b) = (device.tensor_from(&[0, 1, 2, 3], [2, 2])?, device.tensor_from(&[0, 1, 7, 8], [2, 2])?);
/// let first = compare(&a, &b)?.first_difference.expect("two elements differ");
/// assert_eq!((&first.index[..], &first.a[..], &first.b[..]), (&[1, 0][..], "2", "7"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstDifference {
    /// The index along each axis.
    pub index: Vec<usize>,
    /// The element of the first tensor in Rust's notation, such as `-0.0` or `true`. The bits follow a NaN: `NaN (0x7fc00001)`.
    pub a: String,
    /// The element of the second tensor.
    pub b: String,
}

/// Compares two tensors, or views, of one element type and shape. They may be on different devices.
///
/// The elements are copied to the host in parts, after waiting for the work that writes them, and each is read once.
///
/// ```
/// # use kernel_runtime::{Device, Result, compare};
/// # fn main() -> Result<()> {
/// let device = Device::cpu();
/// let expected = device.tensor_from(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let found = device.tensor_from(&[1.0f32, 2.0, 3.0, 4.000_001], [2, 2])?;
/// let comparison = compare(&found, &expected)?;
/// assert!(comparison.within(1e-6, 1e-6), "{comparison}");
/// assert_eq!((comparison.bit_equal, comparison.differing, comparison.max_ulp), (false, 1, 2));
/// assert_eq!(
///     comparison.to_string(),
///     "1 of 4 elements of f32 differ\n\
///      largest errors: 9.537e-7 absolute, 2.384e-7 relative, 2 ulp\n\
///      first difference at [1, 1]: 4.000001 and 4.0"
/// );
/// assert!(compare(&found.slice(..1)?, &expected.slice(..1)?)?.bit_equal);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::ArgumentShape`] for tensors of different shapes, [`Error::InCapture`], or [`Error::Asynchronous`] if the work that writes an element failed.
pub fn compare<'a, 'b, T: Element>(a: impl Into<TensorView<'a, T>>, b: impl Into<TensorView<'b, T>>) -> Result<Comparison> {
    /// The number of elements that are copied to the host at a time.
    const PART: usize = 1 << 18;
    let (a, b) = (a.into(), b.into());
    if a.shape() != b.shape() {
        return Err(Error::ArgumentShape {
            function: "compare",
            argument: "b",
            shape: b.shape().to_vec(),
            expected: format!("{:?} is expected: the shape of `a`", a.shape()),
            help: "give both tensors one shape with `.reshape(..)`, or compare slices of them".to_owned(),
        });
    }
    let mut comparison = Comparison::new(T::DTYPE, a.shape());
    let mut a_part = vec![T::default(); a.len().min(PART)];
    let mut b_part = a_part.clone();
    for start in (0..a.len()).step_by(PART) {
        let len = PART.min(a.len() - start);
        a.read(start, &mut a_part[..len])?;
        b.read(start, &mut b_part[..len])?;
        comparison.add(start, &a_part[..len], &b_part[..len]);
    }
    comparison.frontier.reduce();
    Ok(comparison)
}

impl Comparison {
    fn new(dtype: Dtype, shape: &[usize]) -> Comparison {
        Comparison {
            dtype,
            shape: shape.to_vec(),
            bit_equal: true,
            differing: 0,
            max_absolute_error: 0.0,
            max_relative_error: 0.0,
            max_ulp: 0,
            nan_mismatches: 0,
            nan_pairs: 0,
            first_difference: None,
            is_never_close: false,
            frontier: Frontier::new(dtype.is_float()),
        }
    }

    /// Returns whether `|a - b| <= atol + rtol * |b|` holds for all elements, as `torch.allclose` does. Equal elements are always within the
    /// tolerances. A NaN never is, also beside a NaN, and neither are an infinity and another number. A negative tolerance, or NaN, allows no error.
    ///
    /// `atol + rtol * |b|` is computed in `f64`; the absolute error of integers is exact. If more than 16,384 elements have errors that increase
    /// with `|b|`, an error may exceed its tolerance by the rounding of an `f64`.
    ///
    /// ```
    /// # use kernel_runtime::{Device, Result, compare};
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu();
    /// let (a, b) = (device.tensor(&[i64::MAX, 101])?, device.tensor(&[i64::MAX - 1, 100])?);
    /// let comparison = compare(&a, &b)?;
    /// assert!(comparison.within(1.0, 0.0) && comparison.within(0.0, 0.01));
    /// assert!(!comparison.within(0.5, 0.0) && !comparison.within(0.0, 0.001));
    /// let nan = device.tensor(&[f32::NAN])?;
    /// assert!(!compare(&nan, &nan)?.within(1.0, 1.0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn within(&self, atol: f64, rtol: f64) -> bool {
        let allows_errors = atol >= 0.0 && rtol >= 0.0;
        !self.is_never_close && if allows_errors { self.frontier.is_within(atol, rtol) } else { self.frontier.is_empty() }
    }

    /// Adds elements, the first of which has this row-major index.
    fn add<T: Element>(&mut self, start: usize, a: &[T], b: &[T]) {
        for (offset, (&a, &b)) in a.iter().zip(b).enumerate() {
            let (a_bits, b_bits) = (a.bits(), b.bits());
            if a_bits != b_bits {
                self.bit_equal = false;
                self.differing += 1;
                if self.first_difference.is_none() {
                    let index = index(&self.shape, start + offset);
                    self.first_difference = Some(FirstDifference { index, a: shown(a), b: shown(b) });
                }
            }
            if T::DTYPE.is_float() {
                self.add_floats(T::DTYPE, a_bits, b_bits);
            } else if a_bits != b_bits {
                self.add_integers(T::DTYPE, a_bits, b_bits);
            }
        }
    }

    #[inline(always)]
    fn add_floats(&mut self, dtype: Dtype, a_bits: u64, b_bits: u64) {
        let (a, b) = (value(dtype, a_bits), value(dtype, b_bits));
        if a == b {
            return;
        }
        if a.is_nan() || b.is_nan() {
            self.is_never_close = true;
            *if a.is_nan() && b.is_nan() { &mut self.nan_pairs } else { &mut self.nan_mismatches } += 1;
            return;
        }
        let (error, magnitude) = ((a - b).abs(), b.abs());
        self.max_ulp = self.max_ulp.max(ordinal(dtype, a_bits).abs_diff(ordinal(dtype, b_bits)));
        self.max_absolute_error = self.max_absolute_error.max(error);
        if error.is_finite() {
            self.max_relative_error = self.max_relative_error.max(error / magnitude);
            self.frontier.add_float(magnitude, error);
        } else {
            self.max_relative_error = f64::INFINITY;
            self.is_never_close = true;
        }
    }

    #[inline(always)]
    fn add_integers(&mut self, dtype: Dtype, a: u64, b: u64) {
        let (error, magnitude) = if dtype.is_signed_int() {
            let (a, b) = (signed(dtype, a), signed(dtype, b));
            (a.abs_diff(b), b.unsigned_abs())
        } else {
            (a.abs_diff(b), b)
        };
        self.max_ulp = self.max_ulp.max(error);
        self.max_absolute_error = self.max_ulp as f64;
        self.max_relative_error = self.max_relative_error.max(error as f64 / magnitude as f64);
        self.frontier.add(magnitude, error);
    }
}

/// A number for each float that is not NaN: 1 more than that of the next smaller float, and 0 for both zeros.
#[inline(always)]
fn ordinal(dtype: Dtype, bits: u64) -> i64 {
    let sign = 1 << (8 * dtype.bytes() - 1);
    let magnitude = (bits & (sign - 1)).cast_signed();
    if bits & sign == 0 { magnitude } else { -magnitude }
}

/// The index along each axis of the element with this row-major index.
fn index(shape: &[usize], mut position: usize) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (along, &len) in index.iter_mut().zip(shape).rev() {
        (*along, position) = (position % len, position / len);
    }
    index
}

fn shown<T: Element>(element: T) -> String {
    let bits = element.bits();
    if T::DTYPE.is_float() && value(T::DTYPE, bits).is_nan() {
        return format!("NaN (0x{bits:0digits$x})", digits = 2 * T::DTYPE.bytes());
    }
    format!("{element:?}")
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, dtype) = (self.shape.iter().product::<usize>(), self.dtype);
        match self.differing {
            0 => write!(f, "all {len} elements of {dtype} are bit equal")?,
            differing => write!(f, "{differing} of {len} elements of {dtype} differ")?,
        }
        for (count, tensors) in [(self.nan_mismatches, "one tensor only"), (self.nan_pairs, "both tensors")] {
            match count {
                0 => {}
                1 => write!(f, ", 1 is NaN in {tensors}")?,
                _ => write!(f, ", {count} are NaN in {tensors}")?,
            }
        }
        let relative = rounded(self.max_relative_error);
        if dtype.is_float() {
            write!(f, "\nlargest errors: {} absolute, {relative} relative, {} ulp", rounded(self.max_absolute_error), self.max_ulp)?;
        } else {
            write!(f, "\nlargest errors: {} absolute, {relative} relative", self.max_ulp)?;
        }
        match &self.first_difference {
            Some(FirstDifference { index, a, b }) => write!(f, "\nfirst difference at {index:?}: {a} and {b}"),
            None => Ok(()),
        }
    }
}

/// An error with four digits.
fn rounded(error: f64) -> String {
    if error == 0.0 || error.is_infinite() { error.to_string() } else { format!("{error:.3e}") }
}
