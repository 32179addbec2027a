//! Elements of a type that is known at run time: what goes into a kernel and what comes out.

use galatea::Dtype;

use crate::number::{self, Number};

/// Elements of one type.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) dtype: Dtype,
    pub(crate) bits: Vec<u64>,
}

/// How far elements may be from the reference.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tolerance {
    /// The same number; any NaN is as good as another.
    Exact,
    /// So many units in the last place.
    Ulps(f64),
    /// So much of the number, or so much, whichever is more.
    Relative(f64, f64),
}

impl Array {
    pub(crate) fn new(dtype: Dtype, numbers: impl IntoIterator<Item = Number>) -> Array {
        Array { dtype, bits: numbers.into_iter().map(|number| number::encode(number, dtype)).collect() }
    }

    /// Integers, also as floats.
    pub(crate) fn ints(dtype: Dtype, values: impl IntoIterator<Item = i128>) -> Array {
        Array::new(dtype, values.into_iter().map(Number::Int))
    }

    pub(crate) fn len(&self) -> usize {
        self.bits.len()
    }

    pub(crate) fn get(&self, index: usize) -> Number {
        number::decode(self.bits[index], self.dtype)
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = Number> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Holds the elements, floats among them, to the bits that a function says of each index.
    pub(crate) fn check_bits(&self, want: impl Fn(usize) -> u64) -> Result<(), String> {
        match (0..self.len()).find(|&index| self.bits[index] != want(index)) {
            Some(index) => Err(format!("element {index} is {:#x}, not {:#x}, as bits of `{}`", self.bits[index], want(index), self.dtype)),
            None => Ok(()),
        }
    }

    /// Holds the elements to what a function says of each index.
    pub(crate) fn check(&self, tolerance: Tolerance, want: impl Fn(usize) -> Number) -> Result<(), String> {
        (0..self.len()).try_for_each(|index| self.check_at(index, tolerance, want(index)))
    }

    pub(crate) fn check_at(&self, index: usize, tolerance: Tolerance, want: Number) -> Result<(), String> {
        let dtype = self.dtype;
        let got = self.get(index);
        let fits = match (got, want) {
            (Number::Float(got), want) => {
                let (want, rounded) = (want.float(), want.to(dtype).float());
                let near = |allowed: f64| got == want || got == rounded || (got - want).abs() <= allowed;
                match tolerance {
                    _ if got.is_nan() || want.is_nan() => got.is_nan() && want.is_nan(),
                    Tolerance::Exact => got == rounded && got.is_sign_negative() == rounded.is_sign_negative(),
                    Tolerance::Ulps(ulps) => near(ulps * number::ulp(want, dtype)),
                    Tolerance::Relative(relative, absolute) => near((relative * want.abs()).max(absolute)),
                }
            }
            (Number::Int(got), want) => Number::Int(got) == want.to(dtype),
        };
        if fits { Ok(()) } else { Err(format!("element {index} is {got:?}, not {want:?} as `{dtype}` ({tolerance:?})")) }
    }
}
