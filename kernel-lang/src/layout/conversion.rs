//! Layout conversions: the choice between registers, shuffles and shared memory, and the plan as data.
//!
//! The matrix dst⁻¹ ∘ src decides:
//!
//! | it mixes | the conversion |
//! | --- | --- |
//! | registers only | renames registers |
//! | lanes | exchanges elements by shuffles |
//! | warps | goes through shared memory |
//!
//! If two of them apply, the cheaper one in issue slots is used.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::matrix::Span;
use super::{Layout, LayoutError, Level, SharedPlan, ShufflePlan};

/// How to convert a tile from a source layout to a destination layout: the result of [`conversion`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The layouts are the same map.
    None,
    /// Elements stay in their threads. Destination register `i` is source register `from[i]`, in every thread.
    Registers(Vec<u32>),
    /// Elements stay in their warps.
    Shuffle(ShufflePlan),
    /// Elements stay in their blocks.
    Shared(SharedPlan),
}

/// The cheapest conversion from `src` to `dst` for elements of `element_bits` bits (8, 16, 32 or 64; a bool counts as 8).
///
/// For every element that `dst` holds in a block, `src` must hold the element in the same block. The plan adds and drops copies as needed.
/// The function accepts any two linear layouts, not only those whose bases are single bits.
///
/// ```
/// use kernel_lang::layout::{Conversion, Layout, conversion};
/// // The two tables of the module's first example.
/// let rows: Layout = "layout<[4, 4], register = [(0, 1)], lane = [(0, 2), (1, 0), (2, 0)], warp = [], block = []>".parse()?;
/// let columns: Layout = "layout<[4, 4], register = [(1, 0)], lane = [(2, 0), (0, 1), (0, 2)], warp = [], block = []>".parse()?;
/// let Conversion::Shuffle(plan) = conversion(&rows, &columns, 32)? else { panic!() };
/// assert_eq!(plan.rounds.len(), 2);
///
/// let transposed = Layout::blocked(&[64, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0])?;
/// let Conversion::Shared(plan) = conversion(&transposed, &transposed.transpose()?, 32)? else { panic!() };
/// assert_eq!((plan.store.bank_conflicts, plan.load.bank_conflicts), (0, 0));
/// # Ok::<(), kernel_lang::layout::LayoutError>(())
/// ```
///
/// # Errors
/// [`LayoutError::ShapesDiffer`], [`LayoutError::ThreadsDiffer`], [`LayoutError::ElementBits`]; [`LayoutError::NotSurjective`] if `src`
/// does not hold an element; [`LayoutError::CrossesBlocks`] if `src` holds an element only in another block.
pub fn conversion(src: &Layout, dst: &Layout, element_bits: u32) -> Result<Conversion, LayoutError> {
    check(src, dst, element_bits)?;
    if src == dst {
        return Ok(Conversion::None);
    }
    if let Some(from) = renaming(src, dst) {
        return Ok(Conversion::Registers(from));
    }
    let shared = SharedPlan::new(src, dst, element_bits)?;
    match ShufflePlan::new(src, dst, element_bits)? {
        Some(shuffle) if shuffle.cost() <= shared.cost() => Ok(Conversion::Shuffle(shuffle)),
        _ => Ok(Conversion::Shared(shared)),
    }
}

/// The most conversions that are remembered.
const MOST_KNOWN: usize = 1024;

/// What [`conversion`] returns. It is planned once a thread: compilations ask for few conversions, and for each of them many times.
pub fn known_conversion(src: &Layout, dst: &Layout, element_bits: u32) -> Rc<Result<Conversion, LayoutError>> {
    type Known = FxHashMap<(Layout, Layout, u32), Rc<Result<Conversion, LayoutError>>>;
    thread_local! {
        static KNOWN: RefCell<Known> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        let plan = || Rc::new(conversion(src, dst, element_bits));
        known.entry((src.clone(), dst.clone(), element_bits)).or_insert_with(plan).clone()
    })
}

/// The requirements of every plan on its layouts.
pub(super) fn check(src: &Layout, dst: &Layout, element_bits: u32) -> Result<(), LayoutError> {
    if ![8, 16, 32, 64].contains(&element_bits) {
        return Err(LayoutError::ElementBits { bits: element_bits });
    }
    if src.shape() != dst.shape() {
        return Err(LayoutError::ShapesDiffer);
    }
    for level in [Level::Lane, Level::Warp, Level::Block] {
        if src.bits(level) != dst.bits(level) {
            return Err(LayoutError::ThreadsDiffer { level });
        }
    }
    let mut held = in_block(src);
    let wanted = wanted_in_block(src, dst);
    if wanted.iter().all(|&basis| held.contains(basis)) {
        return Ok(());
    }
    held.extend(src.flat_bases(Level::Block).iter().copied());
    let somewhere = wanted.iter().all(|&basis| held.contains(basis));
    Err(if somewhere { LayoutError::CrossesBlocks } else { LayoutError::NotSurjective })
}

/// The elements that block 0 holds.
fn in_block(layout: &Layout) -> Span {
    let mut span = Span::default();
    for level in [Level::Register, Level::Lane, Level::Warp] {
        span.extend(layout.flat_bases(level).iter().copied());
    }
    span
}

/// The elements that `dst` holds in a block, relative to those that `src` holds there.
fn wanted_in_block(src: &Layout, dst: &Layout) -> Vec<u64> {
    let mut wanted = Vec::new();
    for level in [Level::Register, Level::Lane, Level::Warp] {
        wanted.extend(dst.flat_bases(level));
    }
    wanted.extend(differences(src, dst, Level::Block));
    wanted
}

/// By bit of `level`: the difference between the element of a destination thread and that of the source thread with the same id.
pub(super) fn differences(src: &Layout, dst: &Layout, level: Level) -> Vec<u64> {
    src.flat_bases(level).iter().zip(dst.flat_bases(level)).map(|(a, b)| a ^ b).collect()
}

/// The renaming of registers that converts `src` to `dst` in every thread, if one exists: destination register `i` is source register
/// `from[i]`.
///
/// ```
/// use kernel_lang::layout::{Layout, renaming};
/// let rows: Layout = "layout<[4], register = [1, 2], lane = [], warp = [], block = []>".parse().unwrap();
/// let swapped: Layout = "layout<[4], register = [2, 1], lane = [], warp = [], block = []>".parse().unwrap();
/// assert_eq!(renaming(&rows, &swapped), Some(vec![0, 2, 1, 3]));
/// ```
pub fn renaming(src: &Layout, dst: &Layout) -> Option<Vec<u32>> {
    if src.shape() != dst.shape() {
        return None;
    }
    if [Level::Lane, Level::Warp, Level::Block].iter().any(|&level| src.flat_bases(level) != dst.flat_bases(level)) {
        return None;
    }
    let held = Span::of(src.flat_bases(Level::Register));
    let bits: Vec<u32> = dst.flat_bases(Level::Register).iter().map(|&b| held.solve(b).map(|tag| tag as u32)).collect::<Option<_>>()?;
    // A register whose highest bit is set is the register without this bit, xor the bit's source register.
    let mut from = vec![0];
    for bit in bits {
        for register in 0..from.len() {
            from.push(from[register] ^ bit);
        }
    }
    Some(from)
}

/// The xor of the `values` whose bit is set in `mask`.
pub(super) fn xor_of(values: &[u32], mask: u32) -> u32 {
    values.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).fold(0, |sum, (_, &value)| sum ^ value)
}

/// A number that is linear in the thread id: the xor of one value for each set bit of the lane, the warp and the block.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct XorTable {
    /// By lane bit.
    pub lane: Vec<u32>,
    /// By warp bit.
    pub warp: Vec<u32>,
    /// By block bit.
    pub block: Vec<u32>,
}

impl XorTable {
    /// The number for one thread.
    pub fn at(&self, lane: u32, warp: u32, block: u32) -> u32 {
        xor_of(&self.lane, lane) ^ xor_of(&self.warp, warp) ^ xor_of(&self.block, block)
    }

    /// All bits that are set for some thread.
    pub fn touched(&self) -> u32 {
        self.values().fold(0, |all, value| all | value)
    }

    /// The number of bits of the thread id on which the number depends.
    pub fn steps(&self) -> u32 {
        self.values().filter(|&value| value != 0).count() as u32
    }

    fn values(&self) -> impl Iterator<Item = u32> {
        self.lane.iter().chain(&self.warp).chain(&self.block).copied()
    }
}
