//! Linear layouts: maps over GF(2) from hardware coordinates (register, lane, warp, block) to the elements of a tile.
//!
//! # Example
//!
//! A 4 x 4 tile on eight lanes, with two registers in each. The table shows `lane:register` for every element:
//!
//! ```text
//!           column 0   1     2     3
//! row 0           0:0  0:1   1:0   1:1
//! row 1           2:0  2:1   3:0   3:1
//! row 2           4:0  4:1   5:0   5:1
//! row 3           6:0  6:1   7:0   7:1
//! ```
//!
//! Four entries determine the whole table: those in which one bit of lane or register is set.
//!
//! ```text
//! register bit 0 (register 1)  ->  (0, 1)
//! lane     bit 0 (lane 1)      ->  (0, 2)
//! lane     bit 1 (lane 2)      ->  (1, 0)
//! lane     bit 2 (lane 4)      ->  (2, 0)
//! ```
//!
//! Lane 5 is `4 ^ 1`, so its register 1 holds `(2, 0) ^ (0, 2) ^ (0, 1) = (2, 3)`. The layout consists of these four *bases*, and its text
//! lists them:
//!
//! ```
//! use kernel_lang::layout::Layout;
//! let text = "layout<[4, 4], register = [(0, 1)], lane = [(0, 2), (1, 0), (2, 0)], warp = [], block = []>";
//! let layout: Layout = text.parse().unwrap();
//! assert_eq!(layout.apply(1, 5, 0, 0), [2, 3]); // register 1 of lane 5
//! assert_eq!(layout.to_string(), text);
//! ```
//!
//! The same tile with the columns first:
//!
//! ```text
//! row 0           0:0  2:0   4:0   6:0      layout<[4, 4], register = [(1, 0)], lane = [(2, 0), (0, 1), (0, 2)], ..>
//! row 1           0:1  2:1   4:1   6:1
//! row 2           1:0  3:0   5:0   7:0
//! row 3           1:1  3:1   5:1   7:1
//! ```
//!
//! Going from the first table to the second is a *conversion*. Element (2, 1) moves from `4:1` to `3:0`. No thread can do this alone, but
//! two rounds suffice in which every thread sends one element and receives one. [`conversion`] finds this plan.
//!
//! # The algebra
//!
//! A [`Layout`] is a linear map from the bits of (register, lane, warp, block) to the bits of the index along each axis.
//! Blocked layouts, their slices, matrix fragments, transposes and reshapes are all such maps. Linear algebra answers the questions of a
//! compiler:
//!
//! | question | answer |
//! | --- | --- |
//! | does a layout hold an element more than once | the kernel ([`Layout::free_bits`]); a zero basis is a broadcast |
//! | which thread holds an element | a right inverse ([`Layout::pseudo_inverse`]) |
//! | how wide can a vectorised load be | register bases 1, 2, 4, .. of an axis ([`Layout::contiguous_per_thread`]) |
//! | how to convert `a` to `b` | `b`⁻¹ ∘ `a`; the levels that it mixes decide ([`conversion`]) |
//!
//! Units: a *register* is one element of the tile, whatever the element's width. An index counts elements. Internally the index of an N-d
//! tile is one row-major number, so a reshape changes no basis.
//!
//! Source: Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2", arXiv 2505.23819, and Triton's
//! `LinearLayout`, which uses the same bases.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

mod constructors;
mod conversion;
mod error;
mod fragments;
mod matrix;
mod scatter;
mod shared;
mod shared_block;
mod shared_tile;
mod shuffle;
mod text;

pub use conversion::{Conversion, XorTable, conversion, known_conversion, renaming};
pub use error::LayoutError;
pub use fragments::{Fragments, Multiplier};
pub use matrix::Matrix;
pub use scatter::Trade;
pub use shared::{Access, Instruction, Memory, SharedPlan};
pub use shared_block::{BLOCK_ALIGNMENT, MOST_COLUMNS, STAGED_ROWS, STAGING_BYTES, SharedBlock};
pub use shared_tile::{PartAccess, SharedTile};
pub use shuffle::{Round, ShufflePlan};

use matrix::{Span, combine};

/// A level of the hardware hierarchy, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Elements of one thread.
    Register,
    /// Threads of one warp.
    Lane,
    /// Warps of one block.
    Warp,
    /// Blocks of one cluster.
    Block,
}

impl Level {
    /// All levels, innermost first: the order of a layout's columns and of its text.
    pub const ALL: [Level; 4] = [Level::Register, Level::Lane, Level::Warp, Level::Block];

    /// The name of the level in the text of a layout.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Register => "register",
            Level::Lane => "lane",
            Level::Warp => "warp",
            Level::Block => "block",
        }
    }

    /// The maximum number of bits of the level: 2^16 elements, 32 lanes, 32 warps, 16 blocks.
    pub const fn most_bits(self) -> usize {
        match self {
            Level::Register => 16,
            Level::Lane | Level::Warp => 5,
            Level::Block => 4,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A hardware coordinate: the register, lane, warp and block that hold an element. Also used as a set of bits of each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Coordinate {
    /// Register within the thread.
    pub register: u32,
    /// Lane within the warp.
    pub lane: u32,
    /// Warp within the block.
    pub warp: u32,
    /// Block within the cluster.
    pub block: u32,
}

/// A linear map from the bits of (register, lane, warp, block) to the bits of a tile's index. See the [module](self).
///
/// A clone costs one reference count. Equal layouts have the same shape and the same bases.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout(Arc<Data>);

#[derive(PartialEq, Eq)]
struct Data {
    /// The hash of the other fields, which is compared first: layouts are keys of many tables.
    hash: u64,
    shape: Vec<u32>,
    /// By level: the row-major index of each bit.
    bases: [Vec<u64>; 4],
}

impl Data {
    fn new(shape: Vec<u32>, bases: [Vec<u64>; 4]) -> Data {
        Data { hash: FxBuildHasher.hash_one((&shape, &bases)), shape, bases }
    }
}

impl Hash for Data {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The consecutive indices that a thread holds along an axis: see [`Layout::contiguous_per_thread`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The register bits of the run, lowest first: register bit `bits[i]` adds `1 << i` to the index along the axis.
    pub bits: Vec<u32>,
    /// Whether no other bit of the layout changes the low `bits.len()` bits of the axis. If so, every run starts at a multiple of its
    /// length, and the index is the *sum* of the thread's part and the run's part, not only their xor.
    pub disjoint: bool,
}

impl Run {
    /// The number of elements in the run, at least 1.
    pub fn elements(&self) -> u32 {
        1 << self.bits.len()
    }
}

impl Layout {
    /// The layout with the given bases: `bases[level][bit]` is the index of that bit, with one entry per axis.
    ///
    /// # Errors
    /// If an extent is not a power of two, the tile has more than 2^31 elements, a level has more bits than [`Level::most_bits`], a basis
    /// has another rank than the tile, or a basis lies outside the tile.
    pub fn new(shape: &[u32], bases: &[Vec<Vec<u32>>; 4]) -> Result<Layout, LayoutError> {
        check_shape(shape)?;
        let mut flat: [Vec<u64>; 4] = Default::default();
        for level in Level::ALL {
            for (bit, basis) in bases[level as usize].iter().enumerate() {
                if basis.len() != shape.len() {
                    return Err(LayoutError::Rank { expected: shape.len(), found: basis.len() });
                }
                if basis.iter().zip(shape).any(|(value, extent)| value >= extent) {
                    return Err(LayoutError::OutsideTile { level, bit });
                }
                flat[level as usize].push(flatten(shape, basis));
            }
        }
        Self::from_flat(shape, flat)
    }

    /// Like [`Layout::new`], with the bases as row-major indices inside the tile.
    fn from_flat(shape: &[u32], bases: [Vec<u64>; 4]) -> Result<Layout, LayoutError> {
        check_shape(shape)?;
        for level in Level::ALL {
            let (bits, most) = (bases[level as usize].len(), level.most_bits());
            if bits > most {
                return Err(LayoutError::TooManyBits { level, bits, most });
            }
        }
        Ok(Layout(Arc::new(Data::new(shape.to_vec(), bases))))
    }

    /// The extents of the tile, in elements; powers of two.
    pub fn shape(&self) -> &[u32] {
        &self.0.shape
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.shape.len()
    }

    /// The number of elements of the tile.
    pub fn elements(&self) -> u64 {
        1 << self.index_bits()
    }

    /// The number of bits of the tile's row-major index.
    pub fn index_bits(&self) -> usize {
        self.shape().iter().map(|extent| extent.trailing_zeros() as usize).sum()
    }

    /// The number of bits of `level`.
    pub fn bits(&self, level: Level) -> usize {
        self.flat_bases(level).len()
    }

    /// The number of elements that one thread holds, copies included.
    pub fn registers_per_thread(&self) -> u32 {
        1 << self.bits(Level::Register)
    }

    /// The index of bit `bit` of `level`, with one entry per axis; `None` beyond the level's bits.
    pub fn basis(&self, level: Level, bit: usize) -> Option<Vec<u32>> {
        self.flat_bases(level).get(bit).map(|&flat| self.unflatten(flat))
    }

    /// The entry for `axis` of a basis, without the others; 0 beyond the level's bits.
    pub fn basis_along(&self, level: Level, bit: usize, axis: usize) -> u32 {
        self.flat_bases(level).get(bit).map_or(0, |&flat| self.index_along(axis, flat))
    }

    /// The index along `axis` of the element with this row-major index.
    pub fn index_along(&self, axis: usize, flat: u64) -> u32 {
        let mut below = 0;
        for extent in &self.shape()[axis + 1..] {
            below += extent.trailing_zeros();
        }
        (flat >> below) as u32 & (self.shape()[axis] - 1)
    }

    /// The bases of `level` as row-major indices.
    pub fn flat_bases(&self, level: Level) -> &[u64] {
        &self.0.bases[level as usize]
    }

    /// The index, along each axis, of the element at this hardware coordinate. Bits beyond a level's count are ignored.
    pub fn apply(&self, register: u32, lane: u32, warp: u32, block: u32) -> Vec<u32> {
        self.unflatten(self.flat_index(Coordinate { register, lane, warp, block }))
    }

    /// The row-major index of the element at this hardware coordinate. Bits beyond a level's count are ignored.
    pub fn flat_index(&self, coordinate: Coordinate) -> u64 {
        let values = [coordinate.register, coordinate.lane, coordinate.warp, coordinate.block];
        Level::ALL.iter().fold(0, |sum, &level| sum ^ combine(self.flat_bases(level), values[level as usize].into()))
    }

    /// The map as a matrix. Its input bits are those of the register, then the lane, the warp and the block; its output bits are those of
    /// the row-major index.
    pub fn matrix(&self) -> Matrix {
        Matrix::new(self.0.bases.concat())
    }

    /// Splits an input of [`Layout::matrix`] into its levels.
    pub fn coordinate(&self, mut bits: u64) -> Coordinate {
        let mut next = |level| {
            let count = self.bits(level);
            let value = bits & ((1 << count) - 1);
            bits >>= count;
            value as u32
        };
        Coordinate { register: next(Level::Register), lane: next(Level::Lane), warp: next(Level::Warp), block: next(Level::Block) }
    }

    /// Whether the layout holds every element of the tile.
    pub fn is_surjective(&self) -> bool {
        self.matrix().rank() == self.index_bits()
    }

    /// Whether the layout holds no element twice.
    pub fn is_injective(&self) -> bool {
        let matrix = self.matrix();
        matrix.rank() == matrix.columns().len()
    }

    /// The bits that only make copies. The hardware coordinates in which all of these bits are zero hold every element of the layout
    /// exactly once, so only they store. A bit is free if its basis is a sum of the bases before it, in the order register, lane, warp,
    /// block: copies within a thread are dropped first.
    ///
    /// ```
    /// use kernel_lang::layout::Layout;
    /// // 32 elements on four warps: all four hold the whole tile, and warp 0 is the one to store it.
    /// let free = Layout::vectorised_1d(32, 1, 4).unwrap().free_bits();
    /// assert_eq!((free.register, free.lane, free.warp), (0, 0, 0b11));
    /// ```
    pub fn free_bits(&self) -> Coordinate {
        let mut span = Span::default();
        let mut free = [0; 4];
        for level in Level::ALL {
            for (bit, &basis) in self.flat_bases(level).iter().enumerate() {
                if !span.grow(basis) {
                    free[level as usize] |= 1 << bit;
                }
            }
        }
        Coordinate { register: free[0], lane: free[1], warp: free[2], block: free[3] }
    }

    /// The longest run of consecutive indices along `axis` that a thread holds: register bits with the bases 1, 2, 4, .. along the axis and
    /// zero along the others. If [`Run::disjoint`] is false, the run of a thread is still an aligned block of indices, but in an order that
    /// depends on the thread. An axis beyond the rank has no run.
    ///
    /// ```
    /// use kernel_lang::layout::Layout;
    /// let run = Layout::vectorised_1d(1024, 4, 4).unwrap().contiguous_per_thread(0);
    /// assert_eq!((run.elements(), run.disjoint), (4, true));
    /// ```
    pub fn contiguous_per_thread(&self, axis: usize) -> Run {
        let extent = self.shape().get(axis).copied().unwrap_or(1).trailing_zeros();
        let below: u32 = self.shape().iter().skip(axis + 1).map(|extent| extent.trailing_zeros()).sum();
        let registers = self.flat_bases(Level::Register);
        let bits: Vec<u32> =
            (0..extent).map_while(|bit| registers.iter().position(|&basis| basis == 1 << (below + bit))).map(|bit| bit as u32).collect();
        let mask = ((1 << bits.len()) - 1) << below;
        let touching = self.0.bases.iter().flatten().filter(|&&basis| basis & mask != 0).count();
        Run { disjoint: touching == bits.len(), bits }
    }

    /// All bits of the row-major index that belong to `axis`. Flipping them reverses the order along the axis.
    pub fn mask_along(&self, axis: usize) -> u64 {
        let index: Vec<u32> = (0..self.rank()).map(|other| if other == axis { self.shape()[axis] - 1 } else { 0 }).collect();
        flatten(self.shape(), &index)
    }

    /// Whether the index is the *sum* of the thread's part and the registers' part: no index bit depends on both. A backend then computes
    /// the thread's part once and adds a constant for each register.
    pub fn registers_add(&self) -> bool {
        let touched = |levels: &[Level]| levels.iter().flat_map(|&level| self.flat_bases(level)).fold(0, |a, b| a | b);
        touched(&[Level::Register]) & touched(&[Level::Lane, Level::Warp, Level::Block]) == 0
    }

    /// Whether each basis is zero or a single bit of the index, and no two bases are equal. The index along an axis then consists of bits
    /// of the thread and of the register, without carries, and each bit halves a run along the axis. Blocked layouts have this property,
    /// and reshapes, permutations, slices and broadcasts preserve it.
    pub fn is_bitwise(&self) -> bool {
        let mut seen = 0;
        self.0.bases.iter().flatten().filter(|basis| **basis != 0).all(|&basis| {
            let is_new = basis.count_ones() == 1 && seen & basis == 0;
            seen |= basis;
            is_new
        })
    }

    /// The layout without the register bits that only make copies within a thread, and the remaining bits, lowest first: register bit `i`
    /// of the result is register bit `kept[i]` of `self`.
    pub fn without_register_copies(&self) -> (Layout, Vec<u32>) {
        let free = self.free_bits().register;
        let kept: Vec<u32> = (0..self.bits(Level::Register) as u32).filter(|bit| free >> bit & 1 == 0).collect();
        let mut bases = self.0.bases.clone();
        bases[0] = kept.iter().map(|&bit| self.flat_bases(Level::Register)[bit as usize]).collect();
        (Layout(Arc::new(Data::new(self.shape().to_vec(), bases))), kept)
    }

    /// The map from the row-major index to a hardware coordinate that holds the element, for a surjective layout. Of several coordinates,
    /// the result is the one in which the [`Layout::free_bits`] are zero. [`Layout::coordinate`] splits the result into levels.
    ///
    /// # Errors
    /// [`LayoutError::NotSurjective`].
    pub fn pseudo_inverse(&self) -> Result<Matrix, LayoutError> {
        self.matrix().pseudo_inverse(self.index_bits()).ok_or(LayoutError::NotSurjective)
    }

    /// The inverse of a layout that holds every element exactly once, `None` for any other.
    pub fn inverse(&self) -> Option<Matrix> {
        self.matrix().inverse(self.index_bits())
    }

    /// The map from the hardware coordinates of `self` to those of `outer` that hold the same element: `outer`⁻¹ ∘ `self`.
    ///
    /// # Errors
    /// [`LayoutError::ShapesDiffer`], or [`LayoutError::NotSurjective`] if `outer` does not hold every element.
    pub fn invert_and_compose(&self, outer: &Layout) -> Result<Matrix, LayoutError> {
        if self.shape() != outer.shape() {
            return Err(LayoutError::ShapesDiffer);
        }
        Ok(outer.pseudo_inverse()?.compose(&self.matrix()))
    }

    /// `map` ∘ `self`: the layout of a tile of shape `shape` in which element `i` of this tile is element `map(i)`, both row-major.
    ///
    /// # Errors
    /// If `shape` is not a valid shape, or `map` leaves it.
    pub fn compose(&self, map: &Matrix, shape: &[u32]) -> Result<Layout, LayoutError> {
        let elements = check_shape(shape)?;
        let bases = self.0.bases.each_ref().map(|bases| bases.iter().map(|&basis| map.apply(basis)).collect::<Vec<_>>());
        for level in Level::ALL {
            if let Some(bit) = bases[level as usize].iter().position(|&basis| basis >= elements) {
                return Err(LayoutError::OutsideTile { level, bit });
            }
        }
        Self::from_flat(shape, bases)
    }

    /// Splits a row-major index of this tile's shape into the indices along each axis.
    fn unflatten(&self, mut flat: u64) -> Vec<u32> {
        let mut index = vec![0; self.rank()];
        for (value, extent) in index.iter_mut().zip(self.shape()).rev() {
            *value = (flat & u64::from(extent - 1)) as u32;
            flat >>= extent.trailing_zeros();
        }
        index
    }
}

/// The row-major index of `index`; each entry is below its extent.
fn flatten(shape: &[u32], index: &[u32]) -> u64 {
    shape.iter().zip(index).fold(0, |flat, (extent, &value)| flat << extent.trailing_zeros() | u64::from(value))
}

/// The number of elements of a tile of this shape.
fn check_shape(shape: &[u32]) -> Result<u64, LayoutError> {
    let mut bits = 0;
    for &value in shape {
        if !value.is_power_of_two() {
            return Err(LayoutError::NotAPowerOfTwo { value });
        }
        bits += value.trailing_zeros();
    }
    if bits > 31 { Err(LayoutError::TileTooLarge) } else { Ok(1 << bits) }
}
