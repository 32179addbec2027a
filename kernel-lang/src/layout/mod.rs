//! Which thread holds which elements of a tile: linear maps over GF(2).
//!
//! # An example first
//!
//! A 4 x 4 tile on eight lanes, two registers each. The table shows `lane:register` of every element:
//!
//! ```text
//!           column 0   1     2     3
//! row 0           0:0  0:1   1:0   1:1
//! row 1           2:0  2:1   3:0   3:1
//! row 2           4:0  4:1   5:0   5:1
//! row 3           6:0  6:1   7:0   7:1
//! ```
//!
//! Everything in the table follows from four of its entries, those where a single bit of lane or register is set:
//!
//! ```text
//! register bit 0 (register 1)  ->  (0, 1)
//! lane     bit 0 (lane 1)      ->  (0, 2)
//! lane     bit 1 (lane 2)      ->  (1, 0)
//! lane     bit 2 (lane 4)      ->  (2, 0)
//! ```
//!
//! Lane 5 is `4 ^ 1`, so its register 1 holds `(2, 0) ^ (0, 2) ^ (0, 1) = (2, 3)`. These four *bases* are the layout, and
//! they are what its text says:
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
//! Going from the first table to the second is a *conversion*. Element (2, 1) goes from `4:1` to `3:0`: no thread can do it
//! alone, but every thread can send one element and receive one, twice. [`conversion`] finds that plan.
//!
//! # The algebra
//!
//! A [`Layout`] is a linear map from the bits of (register, lane, warp, block) to the bits of the index along each axis.
//! Blocked layouts, slices of them, matrix fragments, transposes and reshapes are all such maps, and what a compiler
//! asks of them is linear algebra:
//!
//! | question | answer |
//! | --- | --- |
//! | is an element held more than once | the kernel ([`Layout::free_bits`]); a zero basis is a broadcast |
//! | who holds this element | a right inverse ([`Layout::pseudo_inverse`]) |
//! | how wide may a load be | register bases 1, 2, 4, .. of an axis ([`Layout::contiguous_per_thread`]) |
//! | how to get from `a` to `b` | `b`⁻¹ ∘ `a`: which levels it mixes decides ([`conversion`]) |
//!
//! Units: a *register* here is one element of the tile, whatever its width; an index is in elements. Inside, the index of an
//! N-d tile is one number in row-major order, so a reshape changes no basis.
//!
//! Source: Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2",
//! arXiv 2505.23819, and Triton's `LinearLayout`, which has the same bases.

use std::fmt;
use std::sync::Arc;

mod constructors;
mod conversion;
mod error;
mod fragments;
mod matrix;
mod shared;
mod shuffle;
mod text;

pub use conversion::{Conversion, XorTable, conversion, renaming};
pub use error::LayoutError;
pub use matrix::Matrix;
pub use shared::{Access, Instruction, Memory, SharedPlan};
pub use shuffle::{Round, ShufflePlan};

use matrix::{Span, combine};

/// A level of the machine, innermost first.
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

    /// The level's word in the text.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Register => "register",
            Level::Lane => "lane",
            Level::Warp => "warp",
            Level::Block => "block",
        }
    }

    /// How many bits the level may have: 2^16 elements, 32 lanes, 32 warps, 16 blocks.
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

/// A place in the machine that can hold an element; also a set of bits of each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Place {
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
/// Cheap to clone (one reference count) and to compare; equal layouts have the same shape and the same bases.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout(Arc<Data>);

#[derive(PartialEq, Eq, Hash)]
struct Data {
    shape: Vec<u32>,
    /// By level: the row-major index that each bit stands for.
    bases: [Vec<u64>; 4],
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How many elements with consecutive indices a thread holds: [`Layout::contiguous_per_thread`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The run's register bits, lowest first: register bit `bits[i]` adds `1 << i` to the index along the axis.
    pub bits: Vec<u32>,
    /// No other bit of the layout touches the low `bits.len()` bits of the axis. Then every run starts at a multiple of
    /// its length, and the index is the thread's part *plus* the run's part, not only their xor.
    pub disjoint: bool,
}

impl Run {
    /// Elements in the run, at least 1.
    pub fn elements(&self) -> u32 {
        1 << self.bits.len()
    }
}

impl Layout {
    /// The layout with the given bases: `bases[level][bit]` is the index, one entry an axis, that the bit stands for.
    ///
    /// # Errors
    /// If an extent is no power of two, the tile has more than 2^31 elements, a level has more bits than
    /// [`Level::most_bits`], or a basis has another rank than the tile or lies outside it.
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

    /// As [`Layout::new`], with the bases as row-major indices inside the tile.
    fn from_flat(shape: &[u32], bases: [Vec<u64>; 4]) -> Result<Layout, LayoutError> {
        check_shape(shape)?;
        for level in Level::ALL {
            let (bits, most) = (bases[level as usize].len(), level.most_bits());
            if bits > most {
                return Err(LayoutError::TooManyBits { level, bits, most });
            }
        }
        Ok(Layout(Arc::new(Data { shape: shape.to_vec(), bases })))
    }

    /// The tile's extents, in elements; powers of two.
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

    /// Elements, copies included, that one thread holds.
    pub fn registers_per_thread(&self) -> u32 {
        1 << self.bits(Level::Register)
    }

    /// The index that bit `bit` of `level` stands for, one entry an axis; `None` beyond the level's bits.
    pub fn basis(&self, level: Level, bit: usize) -> Option<Vec<u32>> {
        self.flat_bases(level).get(bit).map(|&flat| self.unflatten(flat))
    }

    /// The bases of `level` as row-major indices.
    pub fn flat_bases(&self, level: Level) -> &[u64] {
        &self.0.bases[level as usize]
    }

    /// The index along each axis of the element at this place. Bits beyond a level's count are ignored.
    pub fn apply(&self, register: u32, lane: u32, warp: u32, block: u32) -> Vec<u32> {
        self.unflatten(self.flat_index(Place { register, lane, warp, block }))
    }

    /// The row-major index of the element at this place. Bits beyond a level's count are ignored.
    pub fn flat_index(&self, place: Place) -> u64 {
        let values = [place.register, place.lane, place.warp, place.block];
        Level::ALL.iter().fold(0, |sum, &level| sum ^ combine(self.flat_bases(level), values[level as usize].into()))
    }

    /// The map as a matrix: input bits are the registers', then the lanes', the warps', the blocks'; output bits are those
    /// of the row-major index.
    pub fn matrix(&self) -> Matrix {
        Matrix::new(self.0.bases.concat())
    }

    /// Splits an input of [`Layout::matrix`] into its levels.
    pub fn place(&self, mut bits: u64) -> Place {
        let mut next = |level| {
            let count = self.bits(level);
            let value = bits & ((1 << count) - 1);
            bits >>= count;
            value as u32
        };
        Place { register: next(Level::Register), lane: next(Level::Lane), warp: next(Level::Warp), block: next(Level::Block) }
    }

    /// Whether every element of the tile is held somewhere.
    pub fn is_surjective(&self) -> bool {
        self.matrix().rank() == self.index_bits()
    }

    /// Whether no element is held twice.
    pub fn is_injective(&self) -> bool {
        let matrix = self.matrix();
        matrix.rank() == matrix.columns().len()
    }

    /// The bits that only make copies. Places with all of these bits zero hold every element of the layout exactly once, so
    /// a store is done by them alone. A bit is free if its basis is a sum of the bases before it, in the order register,
    /// lane, warp, block: copies within a thread are dropped first.
    ///
    /// ```
    /// use kernel_lang::layout::Layout;
    /// // 32 elements on four warps: all four hold the whole tile, and warp 0 is the one to store it.
    /// let free = Layout::vectorised_1d(32, 1, 4).unwrap().free_bits();
    /// assert_eq!((free.register, free.lane, free.warp), (0, 0, 0b11));
    /// ```
    pub fn free_bits(&self) -> Place {
        let mut span = Span::default();
        let mut free = [0; 4];
        for level in Level::ALL {
            for (bit, &basis) in self.flat_bases(level).iter().enumerate() {
                if !span.grow(basis) {
                    free[level as usize] |= 1 << bit;
                }
            }
        }
        Place { register: free[0], lane: free[1], warp: free[2], block: free[3] }
    }

    /// The longest run of consecutive indices along `axis` that a thread holds in registers: register bits with the bases
    /// 1, 2, 4, .. along the axis and zero along the others. Where [`Run::disjoint`] does not hold, the run of a thread is
    /// still an aligned block of indices, but in an order that depends on the thread. An axis beyond the rank has no run.
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

    /// All the bits of the row-major index that stand for a position along `axis`: what inverts every position there.
    pub fn mask_along(&self, axis: usize) -> u64 {
        let index: Vec<u32> = (0..self.rank()).map(|other| if other == axis { self.shape()[axis] - 1 } else { 0 }).collect();
        flatten(self.shape(), &index)
    }

    /// Whether the index is the thread's part *plus* the registers' part: no index bit is touched by both. Then a backend
    /// computes the thread's part once and adds a constant for each register.
    pub fn registers_add(&self) -> bool {
        let touched = |levels: &[Level]| levels.iter().flat_map(|&level| self.flat_bases(level)).fold(0, |a, b| a | b);
        touched(&[Level::Register]) & touched(&[Level::Lane, Level::Warp, Level::Block]) == 0
    }

    /// Whether each bit stands for a step along one axis, or for nothing, and no two for the same: then an index along an axis is put
    /// together from bits of the thread and of the register without carries, and runs along it are split in two by one bit at a time.
    /// Blocked layouts are so, and whatever reshapes, permutations, slices and broadcasts make of them.
    pub fn is_bitwise(&self) -> bool {
        let mut seen = 0;
        self.0.bases.iter().flatten().filter(|basis| **basis != 0).all(|&basis| {
            let is_new = basis.count_ones() == 1 && seen & basis == 0;
            seen |= basis;
            is_new
        })
    }

    /// The layout without register bits that only make copies within a thread, and the bits kept, lowest first: register
    /// bit `i` of the result is register bit `kept[i]` of `self`.
    pub fn without_register_copies(&self) -> (Layout, Vec<u32>) {
        let free = self.free_bits().register;
        let kept: Vec<u32> = (0..self.bits(Level::Register) as u32).filter(|bit| free >> bit & 1 == 0).collect();
        let mut bases = self.0.bases.clone();
        bases[0] = kept.iter().map(|&bit| self.flat_bases(Level::Register)[bit as usize]).collect();
        (Layout(Arc::new(Data { shape: self.shape().to_vec(), bases })), kept)
    }

    /// Where to find each element: a map from the row-major index to a place, of a surjective layout. Of several places it
    /// gives the one whose [`Layout::free_bits`] are zero. Split the result with [`Layout::place`].
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

    /// From the places of `self` to the places of `outer` that hold the same element: `outer`⁻¹ ∘ `self`.
    ///
    /// # Errors
    /// [`LayoutError::ShapesDiffer`], or [`LayoutError::NotSurjective`] if `outer` does not hold every element.
    pub fn invert_and_compose(&self, outer: &Layout) -> Result<Matrix, LayoutError> {
        if self.shape() != outer.shape() {
            return Err(LayoutError::ShapesDiffer);
        }
        Ok(outer.pseudo_inverse()?.compose(&self.matrix()))
    }

    /// `map` ∘ `self`: the layout of a tile of shape `shape` whose element `map(i)` is element `i` here, both row-major.
    ///
    /// # Errors
    /// If `shape` is no shape, or `map` leads out of it.
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

    /// The row-major index inside this tile's shape, split by axis.
    fn unflatten(&self, mut flat: u64) -> Vec<u32> {
        let mut index = vec![0; self.rank()];
        for (value, extent) in index.iter_mut().zip(self.shape()).rev() {
            *value = (flat & u64::from(extent - 1)) as u32;
            flat >>= extent.trailing_zeros();
        }
        index
    }
}

/// The row-major index of `index`; each entry below its extent.
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
