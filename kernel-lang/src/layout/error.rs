//! Errors of layouts, in the terms of the kernel language.

use std::fmt;

use super::Level;

/// The reason why a layout could not be built, parsed or converted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// An extent or a count is not a power of two.
    NotAPowerOfTwo {
        /// The given value.
        value: u32,
    },
    /// The tile has more than 2^31 elements.
    TileTooLarge,
    /// A level has more bits than the hardware provides.
    TooManyBits {
        /// The level.
        level: Level,
        /// The given number of bits.
        bits: usize,
        /// The maximum number of bits.
        most: usize,
    },
    /// A basis lies outside the tile.
    OutsideTile {
        /// The level of the basis.
        level: Level,
        /// The bit of the level.
        bit: usize,
    },
    /// A list has a length other than the tile's rank.
    Rank {
        /// The tile's rank.
        expected: usize,
        /// The given length.
        found: usize,
    },
    /// An axis that the tile does not have.
    Axis {
        /// The given axis.
        axis: usize,
        /// The tile's rank.
        rank: usize,
    },
    /// An order that does not name each axis once.
    NotAPermutation,
    /// A reshape to another number of elements.
    ElementCount {
        /// Elements of the tile.
        from: u64,
        /// Elements of the requested shape.
        to: u64,
    },
    /// The text is not a layout.
    Syntax {
        /// Byte offset in the text.
        at: usize,
        /// The expected token.
        expected: &'static str,
    },
    /// No thread holds one of the elements of the tile.
    NotSurjective,
    /// The two layouts describe tiles with different shapes.
    ShapesDiffer,
    /// The two layouts have different numbers of lanes, warps or blocks.
    ThreadsDiffer {
        /// The level at which they differ.
        level: Level,
    },
    /// The destination needs elements that no thread of the same block holds.
    CrossesBlocks,
    /// The element width is not 8, 16, 32 or 64 bits.
    ElementBits {
        /// The given width.
        bits: u32,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPowerOfTwo { value } => write!(f, "`{value}` is not a power of two"),
            Self::TileTooLarge => f.write_str("a tile has at most 2^31 elements"),
            Self::TooManyBits { level, bits, most } => {
                write!(f, "`{level}` has {bits} bits, of at most {most}")
            }
            Self::OutsideTile { level, bit } => {
                write!(f, "the basis of `{level}` bit {bit} lies outside the tile")
            }
            Self::Rank { expected, found } => write!(f, "the tile has {expected} axes, and {found} values were given"),
            Self::Axis { axis, rank } => {
                write!(f, "there is no axis {axis} in a tile of rank {rank}")
            }
            Self::NotAPermutation => f.write_str("an order names each axis of the tile once"),
            Self::ElementCount { from, to } => write!(f, "cannot reshape {from} elements to {to}"),
            Self::Syntax { at, expected } => {
                write!(f, "expected {expected} at byte {at} of the layout")
            }
            Self::NotSurjective => f.write_str("no thread holds some element of the tile"),
            Self::ShapesDiffer => f.write_str("the layouts are of tiles with different shapes"),
            Self::ThreadsDiffer { level } => {
                write!(f, "the layouts have different numbers of `{level}` bits")
            }
            Self::CrossesBlocks => f.write_str("the conversion moves elements between blocks"),
            Self::ElementBits { bits } => {
                write!(f, "elements are of 8, 16, 32 or 64 bits, not {bits}")
            }
        }
    }
}

impl std::error::Error for LayoutError {}
