//! Errors of dims.

use std::panic::Location;

use super::sum::Symbol;
use crate::Site;

/// A mistake in an expression of dims. An expression with a mistake is an ordinary [`Dim`](super::Dim); each use of its value returns the error.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DimError {
    /// A text is not the name of a dim.
    #[error(
        "`{name}` is no name for a dim\nhelp: a name has letters, digits and `_`, and begins with a letter; `min`, `max` and `cdiv` are functions"
    )]
    Name {
        /// The text.
        name: String,
    },
    /// A dim cannot have these values.
    #[error("dim `{name}` cannot be in {low}..={high}\nhelp: the lower bound is at least 0 and at most the upper one")]
    Range {
        /// The name of the dim.
        name: String,
        /// The lower bound.
        low: i64,
        /// The upper bound.
        high: i64,
    },
    /// An expression has two dims of one name and different ranges.
    #[error(
        "dim `{name}` is {} in {} and {} in {}\nhelp: clone one `Dim`, or choose two names",
        written(.ranges[0]), .declared[0], written(.ranges[1]), .declared[1]
    )]
    Conflict {
        /// The name of both dims.
        name: String,
        /// Both ranges.
        ranges: [(i64, i64); 2],
        /// Where both were declared.
        declared: [Site; 2],
    },
    /// An expression divides by 0.
    #[error("`{dividend}` is divided by 0")]
    DivisionByZero {
        /// The dividend.
        dividend: String,
    },
    /// A number is not in the range of 64-bit integers.
    #[error("an expression of dims exceeds 64 bits")]
    Overflow,
    /// An expression has too many parts.
    #[error(
        "an expression of dims is too complex: at most {} factors, nested {} deep, are possible",
        super::sum::MOST_PARTS,
        super::sum::MOST_DEPTH
    )]
    TooComplex,
    /// A tensor lacks an axis.
    #[error("there is no axis {axis}: the tensor has {rank} {}", if *.rank == 1 { "axis" } else { "axes" })]
    NoAxis {
        /// The number that was asked for.
        axis: isize,
        /// The number of axes.
        rank: usize,
    },
    /// A number of elements or of programs is below 0.
    #[error("an extent is {value}, which is below 0")]
    Negative {
        /// The number.
        value: i64,
    },
    /// A value was asked for, but a dim has none.
    #[error("dim `{name}` has no value (declared in {declared})")]
    Unset {
        /// The name of the dim.
        name: String,
        /// Where it was declared.
        declared: Site,
    },
    /// A value is not in the range of its dim.
    #[error("dim `{name}` is {value}, allowed {} (declared in {declared})", written(*.range))]
    OutOfRange {
        /// The name of the dim.
        name: String,
        /// The value.
        value: i64,
        /// The lower and the upper bound.
        range: (i64, i64),
        /// Where it was declared.
        declared: Site,
    },
    /// A dim was set to two values.
    #[error("dim `{name}` is both {first} and {second}")]
    TwoValues {
        /// The name of the dim.
        name: String,
        /// The value that it was set to first.
        first: i64,
        /// The other value.
        second: i64,
    },
    /// Something else than a named dim was to be set to a value.
    #[error("`{expression}` cannot be set to a value\nhelp: set the dims that it names")]
    NotNamed {
        /// The expression.
        expression: String,
    },
    /// A comparison holds for some values of the dims only, or no proof was found.
    #[error("`{comparison}` is not decided for {ranges} ({location})\nhelp: {}", narrow(.split))]
    Undecided {
        /// The comparison.
        comparison: String,
        /// The ranges of all dims in it.
        ranges: String,
        /// The ranges of the only dim in it for which the comparison holds everywhere or nowhere.
        split: Option<(String, [(i64, i64); 2])>,
        /// Where it was asked for.
        location: &'static Location<'static>,
    },
    /// A text is no expression of dims.
    #[error("expected {expected} at column {column} of `{text}`")]
    Syntax {
        /// The text.
        text: String,
        /// The column of the mistake, counted in characters from 1.
        column: usize,
        /// A description of valid text.
        expected: &'static str,
    },
    /// A text names a dim that was not declared.
    #[error("`{text}` names `{name}`, which is not declared")]
    Undeclared {
        /// The text.
        text: String,
        /// The name.
        name: String,
    },
}

impl DimError {
    pub(super) fn conflict(first: &Symbol, second: &Symbol) -> DimError {
        DimError::Conflict {
            name: first.name.to_string(),
            ranges: [first, second].map(|symbol| (symbol.low, symbol.high)),
            declared: [first.declared.clone(), second.declared.clone()],
        }
    }
}

fn written((low, high): (i64, i64)) -> String {
    format!("{low}..={high}")
}

fn narrow(split: &Option<(String, [(i64, i64); 2])>) -> String {
    match split {
        Some((name, [first, second])) => format!("narrow `{name}` to {} or to {}", written(*first), written(*second)),
        None => "narrow the ranges of the dims".to_owned(),
    }
}
