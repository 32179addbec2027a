//! `verify = ..` of `#[autotune]`: a configuration must compute the right results before it can be chosen.
//!
//! The reference is the kernel itself, run by the CPU in its first configuration, or a function of the user. Both get a host copy of the
//! arguments in their state before the launch. Then each configuration runs once on restored arguments, and every tensor that the kernel
//! may write is compared element by element.

use kernel_lang::dtype::Dtype;

use super::memory::read;
use crate::kernel::gpu::Gpu;
use crate::launch::args::{Args, Region};
use crate::tensor::element;
use crate::{Element, Result, Scalar};

/// The options of `verify`.
#[derive(Clone, Copy)]
pub(super) struct Verify {
    /// The user's reference function; the CPU if none.
    pub(super) by: Option<Function>,
    /// The tolerance relative to the values; the default of the element type if none.
    pub(super) rtol: Option<f64>,
}

/// A user's function: its path in the source, and the function that calls it.
pub(super) type Function = (&'static str, fn(&mut HostArgs));

impl Verify {
    /// Distinguishes this comparison from a different one in the record's key: results that pass one comparison may fail another.
    pub(super) fn description(self) -> String {
        let by = self.by.map_or("the CPU".to_owned(), |(path, _)| format!("`{path}`"));
        let rtol = self.rtol.map_or("by type".to_owned(), |rtol| format!("{rtol:?}"));
        format!("verified by {by}, rtol {rtol}\n")
    }
}

/// The arguments of a launch in host memory.
#[doc(hidden)]
pub struct HostArgs {
    words: Vec<u64>,
    tensors: Vec<HostTensor>,
}

struct HostTensor {
    region: Region,
    /// The index of its address among the argument words.
    word: usize,
    bytes: Vec<u8>,
}

/// The reference results.
pub(super) struct Reference {
    /// The tensors that the kernel may write.
    tensors: Vec<HostTensor>,
    rtol: Option<f64>,
}

impl HostArgs {
    /// The arguments in their state before the launch, with zeros for the tensors with these numbers. None if there is no memory for the
    /// copies.
    pub(super) fn read<G: Gpu, const WORDS: usize>(args: &Args<'_, WORDS>, gpu: &G, zeroed: &[usize]) -> Result<Option<HostArgs>> {
        let mut tensors = Vec::new();
        for (number, (region, word)) in args.regions().zip(args.address_words()).enumerate() {
            let bytes = if zeroed.contains(&number) { Some(vec![0; region.bytes]) } else { read(gpu, region)? };
            let Some(bytes) = bytes else { return Ok(None) };
            tensors.push(HostTensor { region, word, bytes });
        }
        Ok(Some(HostArgs { words: args.given().to_vec(), tensors }))
    }

    /// Calls `run` with addresses of host buffers, and copies its results back into the tensors.
    pub(super) fn run(&mut self, run: impl FnOnce(&[u64]) -> Result<()>) -> Result<()> {
        // Allocate words, so that elements of every type are aligned.
        let words = |tensor: &HostTensor| -> Vec<u64> {
            let word = |part: &[u8]| std::array::from_fn(|i| part.get(i).copied().unwrap_or(0));
            tensor.bytes.chunks(8).map(|part| u64::from_ne_bytes(word(part))).collect()
        };
        let mut buffers: Vec<Vec<u64>> = self.tensors.iter().map(words).collect();
        for (tensor, buffer) in self.tensors.iter().zip(&mut buffers) {
            self.words[tensor.word] = buffer.as_mut_ptr().expose_provenance() as u64;
        }
        run(&self.words)?;
        for (tensor, buffer) in self.tensors.iter_mut().zip(buffers) {
            tensor.bytes = buffer.into_iter().flat_map(u64::to_ne_bytes).take(tensor.region.bytes).collect();
        }
        Ok(())
    }

    /// Makes the reference from the arguments after the run.
    pub(super) fn into_reference(self, rtol: Option<f64>) -> Reference {
        Reference { tensors: self.tensors.into_iter().filter(|tensor| tensor.region.writes).collect(), rtol }
    }

    /// Returns the elements of a tensor.
    pub fn take<T: Element>(&mut self, number: usize) -> Vec<T> {
        let tensor = &self.tensors[number];
        tensor.bytes.chunks_exact(size_of::<T>()).map(|bytes| T::of_bits(bits(bytes))).collect()
    }

    /// Replaces the elements of a tensor.
    pub fn give<T: Element>(&mut self, number: usize, elements: Vec<T>) {
        let bytes = elements.into_iter().flat_map(|element| element.bits().to_le_bytes().into_iter().take(size_of::<T>()));
        self.tensors[number].bytes = bytes.collect();
    }

    /// Returns the scalar argument at this word.
    pub fn scalar<T: Scalar>(&self, word: usize) -> T {
        T::of_word(self.words[word])
    }
}

impl Reference {
    /// Compares the current contents with the reference. Returns a description of the difference, if there is one.
    pub(super) fn difference(&self, gpu: &impl Gpu) -> Result<Option<String>> {
        for HostTensor { region, bytes, .. } in &self.tensors {
            let Some(found) = read(gpu, *region)? else {
                return Ok(Some(format!("cannot be compared with the reference: there is no memory for a copy of `{}`", region.name)));
            };
            if let Some(difference) = difference(region.name, region.dtype, &found, bytes, self.rtol) {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }
}

/// Describes how the elements of a tensor differ from the reference: the first difference, and the number of differences.
///
/// Integers must be equal. A float may differ by `rtol` times the sum of the reference's magnitude and the tensor's mean magnitude. The
/// mean allows for cancellation: a small difference of large terms is only as exact as the terms. NaN matches NaN.
fn difference(name: &str, dtype: Dtype, found: &[u8], right: &[u8], rtol: Option<f64>) -> Option<String> {
    let width = dtype.bytes();
    let pairs = || found.chunks_exact(width).zip(right.chunks_exact(width)).enumerate().filter(|(_, (found, right))| found != right);
    pairs().next()?;
    let is_float = dtype.is_float() || dtype.is_float8();
    let (rtol, mean) = if is_float { (rtol.unwrap_or(allowed(dtype)), mean_magnitude(dtype, right)) } else { (0.0, 0.0) };
    let differs = |found: &[u8], right: &[u8]| {
        let (found, right) = (value(dtype, found), value(dtype, right));
        let is_near = right.is_finite() && (found - right).abs() <= rtol * (right.abs() + mean);
        !is_float || !(is_near || found == right || (found.is_nan() && right.is_nan()))
    };
    let mut wrong = pairs().filter(|(_, (found, right))| differs(found, right));
    let (index, (found_there, right_there)) = wrong.next()?;
    let (count, all) = (1 + wrong.count(), right.len() / width);
    let (found, right) = (shown(dtype, found_there), shown(dtype, right_there));
    Some(format!("differs from the reference: `{name}[{index}]` is {found} instead of {right} ({count} of {all} elements differ)"))
}

/// The default tolerance. The errors of another summation order and of device approximations stay below it in most kernels.
fn allowed(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F64 => 1e-9,
        Dtype::F32 => 1e-4,
        Dtype::F16 => 4e-3,
        Dtype::Bf16 => 3e-2,
        Dtype::F8E4M3 => 0.25,
        _ => 0.5,
    }
}

/// The mean magnitude of the finite elements.
fn mean_magnitude(dtype: Dtype, elements: &[u8]) -> f64 {
    let finite = elements.chunks_exact(dtype.bytes()).map(|bytes| value(dtype, bytes).abs()).filter(|value| value.is_finite());
    let (sum, count) = finite.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if sum > 0.0 { sum / count } else { 0.0 }
}

fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

fn value(dtype: Dtype, bytes: &[u8]) -> f64 {
    element::value(dtype, bits(bytes))
}

fn shown(dtype: Dtype, bytes: &[u8]) -> String {
    let bits = bits(bytes);
    match dtype {
        Dtype::Bool => (bits & 1 == 1).to_string(),
        _ if dtype.is_signed_int() => element::signed(dtype, bits).to_string(),
        _ if dtype.is_int() => bits.to_string(),
        Dtype::F32 => f32::from_bits(bits as u32).to_string(),
        _ => value(dtype, bytes).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Element>(values: &[T]) -> Vec<u8> {
        values.iter().flat_map(|value| value.bits().to_le_bytes().into_iter().take(size_of::<T>())).collect()
    }

    fn compare<T: Element>(found: &[T], right: &[T], rtol: Option<f64>) -> Option<String> {
        difference("y", T::DTYPE, &of(found), &of(right), rtol)
    }

    #[test]
    fn integers_are_equal_or_wrong() {
        assert_eq!(compare(&[1i32, -2, 3], &[1, -2, 3], None), None);
        let text = compare(&[1i32, -2, 3], &[1, -3, 4], Some(0.9)).unwrap();
        assert_eq!(text, "differs from the reference: `y[1]` is -2 instead of -3 (2 of 3 elements differ)");
        assert!(compare(&[u64::MAX], &[u64::MAX - 1], None).unwrap().contains("18446744073709551615 instead of 18446744073709551614"));
        assert!(compare(&[true], &[false], None).unwrap().contains("is true instead of false"));
    }

    #[test]
    fn floats_may_be_off_by_what_suits_their_type_or_was_said() {
        assert_eq!(compare(&[1.00005f32, -2.0], &[1.0, -2.0], None), None);
        assert!(compare(&[1.001f32, -2.0], &[1.0, -2.0], None).unwrap().contains("`y[0]` is 1.001 instead of 1 (1 of 2"));
        assert_eq!(compare(&[1.001f32, -2.0], &[1.0, -2.0], Some(1e-3)), None);
        assert!(compare(&[1.0f32 + f32::EPSILON], &[1.0], Some(0.0)).is_some());
        assert!(compare(&[1.000_001f64], &[1.0], None).is_some());
        // The difference of large terms is as exact as the terms.
        assert_eq!(compare(&[1000.0f32, 0.001], &[1000.0, 0.002], None), None);
        assert!(compare(&[1000.0f32, 1.0], &[1000.0, 0.0], None).is_some());
    }

    #[test]
    fn nan_and_infinity_are_right_where_the_reference_has_them() {
        let (nan, infinity) = (f32::NAN, f32::INFINITY);
        assert_eq!(compare(&[nan, infinity, -0.0], &[-nan, infinity, 0.0], None), None);
        for (found, right) in [(nan, 1.0), (1.0, nan), (infinity, 1.0), (1.0, infinity), (infinity, -infinity)] {
            assert!(compare(&[found], &[right], None).is_some(), "{found} {right}");
        }
    }
}
