//! Dims: numbers that are known when a program runs, or expressions of named dims.
//!
//! The extents of a recorded graph's tensors, the grids and the arguments of its launches are such numbers. A named dim has a range, so comparisons
//! of expressions can be proved for all its values, and memory can be planned for the largest one.

mod bounds;
mod error;
mod parse;
mod print;
mod sum;
#[cfg(test)]
mod tests;
mod values;

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, RangeInclusive, Rem, Sub};
use std::panic::Location;
use std::sync::Arc;

use crate::{Error, Result, Site};

pub use bounds::{Proof, Relation};
pub use error::DimError;
use sum::{Sum, Symbol};
pub use values::DimValues;

/// A number, or an expression of named dims.
///
/// | operation | written | meaning |
/// |---|---|---|
/// | sums and products | `a + b`, `a - b`, `a * b`, `-a` | exact |
/// | quotient | `a / b` | rounded down, also below 0 |
/// | remainder | `a % b` | `a - b * (a / b)` |
/// | quotient, rounded up | `a.cdiv(b)` | `-(-a / b)` |
/// | minimum, maximum | `a.min(b)`, `a.max(b)` | |
///
/// Most equal expressions have one form, and `==` compares forms: `n + n == 2 * n`. [`Dim::compare`] proves more. `Display` writes the form, and [`Dim::parse`] reads it.
///
/// Operations on numbers allocate nothing. An operation without a result, such as a division by 0, gives a dim with an error, which each use of its
/// value returns: [`Dim::value`] and the comparisons.
///
/// ```
/// # use kernel_runtime::{Relation, Dim, DimValues, Proof, Result};
/// # fn main() -> Result<()> {
/// let batch = Dim::new("batch", 1..=1024);
/// let len = 64 * &batch;
/// let programs = len.cdiv(1024);
/// assert_eq!(programs.to_string(), "cdiv(64*batch, 1024)");
/// assert_eq!(programs.bounds()?, 1..=64);
///
/// // The programs cover all elements, for every batch.
/// assert_eq!((&programs * 1024).compare(Relation::Ge, &len), Proof::Yes);
/// assert!(programs.is_le(&batch)?);
///
/// assert_eq!(programs.value(&DimValues::new().with(&batch, 100)?)?, 7);
/// assert!(batch.is_gt(4).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dim(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Known(i64),
    /// Has terms.
    Sum(Arc<Sum>),
    Invalid(Arc<DimError>),
}

impl Dim {
    /// A named dim with all values of the range, whose lower bound is at least 0.
    ///
    /// Two dims with the same name and range are the same dim. An expression must not have dims of one name and different ranges.
    #[track_caller]
    pub fn new(name: &str, range: RangeInclusive<i64>) -> Dim {
        Dim::declared_at(name, range, Location::caller().into())
    }

    /// [`Dim::new`] with the line of the declaration.
    #[must_use]
    pub fn declared_at(name: &str, range: RangeInclusive<i64>, site: Site) -> Dim {
        let (low, high) = range.into_inner();
        let name = name.to_owned();
        if !parse::is_name(&name) {
            return Dim::of(Err(DimError::Name { name }));
        }
        if low < 0 || low > high {
            return Dim::of(Err(DimError::Range { name, low, high }));
        }
        let symbol = Symbol { name: name.into(), low, high, declared: site };
        Dim(Repr::Sum(Arc::new(Sum::symbol(Arc::new(symbol)))))
    }

    /// A dim with an error.
    pub(crate) fn invalid(error: DimError) -> Dim {
        Dim::of(Err(error))
    }

    /// Whether the dim has an error.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self.0, Repr::Invalid(_))
    }

    fn of(sum: Result<Sum, DimError>) -> Dim {
        Dim(match sum {
            Ok(sum) => match sum.known() {
                Some(number) => Repr::Known(number),
                None => Repr::Sum(Arc::new(sum)),
            },
            Err(error) => Repr::Invalid(Arc::new(error)),
        })
    }

    /// The canonical sum.
    fn sum(&self) -> Result<Sum, DimError> {
        match &self.0 {
            Repr::Known(number) => Ok(Sum::constant(*number)),
            Repr::Sum(sum) => Ok((**sum).clone()),
            Repr::Invalid(error) => Err((**error).clone()),
        }
    }

    /// The result of an operation on numbers, or else on sums.
    fn binary(
        &self,
        other: &Dim,
        on_numbers: impl FnOnce(i64, i64) -> Option<i64>,
        on_sums: impl FnOnce(&Sum, &Sum) -> Result<Sum, DimError>,
    ) -> Dim {
        if let (Repr::Known(a), Repr::Known(b)) = (&self.0, &other.0)
            && let Some(number) = on_numbers(*a, *b)
        {
            return Dim(Repr::Known(number));
        }
        Dim::of(self.sum().and_then(|a| on_sums(&a, &other.sum()?)))
    }

    /// The number, if the dim has no names.
    pub fn known(&self) -> Option<i64> {
        match self.0 {
            Repr::Known(number) => Some(number),
            Repr::Sum(_) | Repr::Invalid(_) => None,
        }
    }

    /// The named dims in the expression, sorted by name.
    pub fn named(&self) -> Vec<Dim> {
        match &self.0 {
            Repr::Sum(sum) => sum.symbols.iter().map(|symbol| Dim(Repr::Sum(Arc::new(Sum::symbol(symbol.clone()))))).collect(),
            Repr::Known(_) | Repr::Invalid(_) => Vec::new(),
        }
    }

    /// Returns whether the dim is a named dim, not an expression of some.
    pub fn is_named(&self) -> bool {
        matches!(&self.0, Repr::Sum(sum) if sum.as_symbol().is_some())
    }

    /// The name and the range of a named dim: `batch in 1..=1024`.
    pub fn declaration(&self) -> Option<String> {
        match &self.0 {
            Repr::Sum(sum) => sum.as_symbol().map(|symbol| symbol.declaration()),
            Repr::Known(_) | Repr::Invalid(_) => None,
        }
    }

    /// The name, the range and the line of the declaration of a named dim.
    pub fn declared(&self) -> Option<(String, RangeInclusive<i64>, Site)> {
        match &self.0 {
            Repr::Sum(sum) => {
                let symbol = sum.as_symbol()?;
                Some((symbol.name.to_string(), symbol.low..=symbol.high, symbol.declared.clone()))
            }
            Repr::Known(_) | Repr::Invalid(_) => None,
        }
    }

    /// A range that contains all values of the expression. It is exact for a named dim, and may be wider for an expression.
    ///
    /// # Errors
    /// [`Error::Dim`] for an expression with a mistake, or whose values exceed 64 bits.
    pub fn bounds(&self) -> Result<RangeInclusive<i64>> {
        let interval = self.sum()?.bounds();
        let bound = |bound: i128| i64::try_from(bound).map_err(|_| DimError::Overflow);
        Ok(bound(interval.low)?..=bound(interval.high)?)
    }

    /// The quotient, rounded up: `-(-self / divisor)`.
    pub fn cdiv(&self, divisor: impl Into<Dim>) -> Dim {
        let divisor = divisor.into();
        // For a positive divisor this is the form that has fewer signs.
        if divisor.compare(Relation::Gt, 0) == Proof::Yes { (self + &divisor - 1) / divisor } else { -(-self / divisor) }
    }

    /// The smaller one of both.
    pub fn min(&self, other: impl Into<Dim>) -> Dim {
        self.binary(&other.into(), |a, b| Some(a.min(b)), Sum::min)
    }

    /// The larger one of both.
    pub fn max(&self, other: impl Into<Dim>) -> Dim {
        -(-self).min(-other.into())
    }

    /// Whether the comparison holds for all values of the dims. The answer is [`Proof::Unknown`], too, if a dim has an error.
    pub fn compare(&self, comparison: Relation, other: impl Into<Dim>) -> Proof {
        match (self - other.into()).sum() {
            Ok(difference) => difference.compares(comparison),
            Err(_) => Proof::Unknown,
        }
    }

    /// Whether the dim is a multiple of a number, for all values of the dims.
    pub fn is_multiple_of(&self, divisor: i64) -> Proof {
        (self % divisor).compare(Relation::Eq, 0)
    }

    /// Whether `self == other`, for all values of the dims.
    ///
    /// # Errors
    /// [`Error::Dim`] with the caller's line if the comparison is not decided, or if a dim has an error.
    #[track_caller]
    pub fn is_eq(&self, other: impl Into<Dim>) -> Result<bool> {
        self.decide(Relation::Eq, other.into(), Location::caller())
    }

    /// Whether `self < other`, for all values of the dims.
    ///
    /// # Errors
    /// [`Error::Dim`] with the caller's line if the comparison is not decided, or if a dim has an error.
    #[track_caller]
    pub fn is_lt(&self, other: impl Into<Dim>) -> Result<bool> {
        self.decide(Relation::Lt, other.into(), Location::caller())
    }

    /// Whether `self <= other`, for all values of the dims.
    ///
    /// # Errors
    /// [`Error::Dim`] with the caller's line if the comparison is not decided, or if a dim has an error.
    #[track_caller]
    pub fn is_le(&self, other: impl Into<Dim>) -> Result<bool> {
        self.decide(Relation::Le, other.into(), Location::caller())
    }

    /// Whether `self > other`, for all values of the dims.
    ///
    /// # Errors
    /// [`Error::Dim`] with the caller's line if the comparison is not decided, or if a dim has an error.
    ///
    /// ```
    /// # use kernel_runtime::Dim;
    /// let error = Dim::new("batch", 1..=1024).is_gt(4).unwrap_err().to_string();
    /// assert!(error.starts_with("`batch > 4` is not decided for batch in 1..=1024 ("), "{error}");
    /// assert!(error.ends_with("help: narrow `batch` to 1..=4 or to 5..=1024"), "{error}");
    /// ```
    #[track_caller]
    pub fn is_gt(&self, other: impl Into<Dim>) -> Result<bool> {
        self.decide(Relation::Gt, other.into(), Location::caller())
    }

    /// Whether `self >= other`, for all values of the dims.
    ///
    /// # Errors
    /// [`Error::Dim`] with the caller's line if the comparison is not decided, or if a dim has an error.
    #[track_caller]
    pub fn is_ge(&self, other: impl Into<Dim>) -> Result<bool> {
        self.decide(Relation::Ge, other.into(), Location::caller())
    }

    fn decide(&self, comparison: Relation, other: Dim, location: &'static Location<'static>) -> Result<bool> {
        let difference = self.sum()?.minus(&other.sum()?)?;
        match difference.compares(comparison) {
            Proof::Yes => Ok(true),
            Proof::No => Ok(false),
            Proof::Unknown => Err(Error::Dim(DimError::Undecided {
                comparison: format!("{self} {} {other}", comparison.operator()),
                ranges: difference.symbols.iter().map(|symbol| symbol.declaration()).collect::<Vec<_>>().join(", "),
                split: difference.split(comparison),
                location,
            })),
        }
    }

    /// The value of the expression for these values of the named dims.
    ///
    /// # Errors
    /// [`Error::Dim`] for an expression with a mistake, a dim without a value, a division by 0, or a value that exceeds 64 bits.
    pub fn value(&self, values: &DimValues) -> Result<i64> {
        match &self.0 {
            Repr::Known(number) => Ok(*number),
            Repr::Sum(sum) => {
                let value = sum.evaluate(&|symbol| values.get(symbol))?;
                Ok(i64::try_from(value).map_err(|_| DimError::Overflow)?)
            }
            Repr::Invalid(error) => Err(Error::Dim((**error).clone())),
        }
    }

    /// The expression that `Display` wrote as `text`, or that is written by hand in Rust's syntax: numbers, names, `+ - * / %`, `cdiv(a, b)`,
    /// `min(a, b, ..)` and `max(a, b, ..)`. Its names are those of `dims`.
    ///
    /// ```
    /// # use kernel_runtime::Dim;
    /// # fn main() -> kernel_runtime::Result<()> {
    /// let n = Dim::new("n", 0..=100);
    /// assert_eq!(Dim::parse("(n + n) * 3 + 1 % 2", &[n.clone()])?, 6 * n + 1);
    /// assert!(Dim::parse("2 * m", &[]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Dim`] for a text that is no expression, that names a dim which is not in `dims`, or whose value does not exist.
    pub fn parse(text: &str, dims: &[Dim]) -> Result<Dim> {
        let dim = parse::run(text, dims)?;
        match dim.0 {
            Repr::Invalid(error) => Err(Error::Dim((*error).clone())),
            Repr::Known(_) | Repr::Sum(_) => Ok(dim),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Known(number) => number.fmt(f),
            Repr::Sum(sum) => f.pad(&sum.to_string()),
            Repr::Invalid(error) => write!(f, "<{error}>"),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Dim {
        dim.clone()
    }
}

impl From<usize> for Dim {
    fn from(number: usize) -> Dim {
        i64::try_from(number).map_or_else(|_| Dim::of(Err(DimError::Overflow)), Dim::from)
    }
}

macro_rules! from_number {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Dim {
            fn from(number: $ty) -> Dim {
                Dim(Repr::Known(number.into()))
            }
        }
    )*};
}

from_number!(i32, u32, i64);

fn quotient(a: i64, b: i64) -> Option<i64> {
    sum::floor(a.into(), b.into()).and_then(|quotient| quotient.try_into().ok())
}

fn remainder(a: &Sum, b: &Sum) -> Result<Sum, DimError> {
    a.minus(&a.floor_div(b)?.times(b)?)
}

/// The operators on dims by value and by reference. On the left, only one type of integers is possible: otherwise `64 * &n` has no type.
macro_rules! operators {
    ($($operator:ident $method:ident $on_numbers:expr, $on_sums:expr;)*) => {$(
        impl<D: Into<Dim>> $operator<D> for &Dim {
            type Output = Dim;
            fn $method(self, other: D) -> Dim {
                self.binary(&other.into(), $on_numbers, $on_sums)
            }
        }

        impl<D: Into<Dim>> $operator<D> for Dim {
            type Output = Dim;
            fn $method(self, other: D) -> Dim {
                (&self).$method(other)
            }
        }

        impl $operator<Dim> for i64 {
            type Output = Dim;
            fn $method(self, other: Dim) -> Dim {
                Dim::from(self).$method(other)
            }
        }

        impl $operator<&Dim> for i64 {
            type Output = Dim;
            fn $method(self, other: &Dim) -> Dim {
                Dim::from(self).$method(other)
            }
        }
    )*};
}

operators! {
    Add add i64::checked_add, Sum::plus;
    Sub sub i64::checked_sub, Sum::minus;
    Mul mul i64::checked_mul, Sum::times;
    Div div quotient, Sum::floor_div;
    Rem rem |a, b| a.checked_sub(quotient(a, b)?.checked_mul(b)?), remainder;
}

impl Neg for &Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        0 - self
    }
}

impl Neg for Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        -&self
    }
}
