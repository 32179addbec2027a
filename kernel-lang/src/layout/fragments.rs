//! Tensor-core fragments: the layouts of the operands and accumulators of `mma.sync` and `wgmma`, as in the figures of the PTX ISA.
//!
//! In all of them lane = 4 * group + member. The group (bits 2, 3, 4) runs along rows, the member (bits 0, 1) along columns.
//!
//! ```text
//! accumulator of m16n8, 32-bit      column 0        1        2        3     ..   7
//! row 0                             lane 0: c0   0: c1    1: c0    1: c1       3: c1
//! row 1                             lane 4: c0   4: c1    5: c0    5: c1       7: c1
//! ..
//! row 8                             lane 0: c2   0: c3    1: c2    1: c3       3: c3
//! ```

use super::constructors::Tiler;
use super::{Layout, LayoutError, Level};

/// How the products of a `dot` are computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Multiplier {
    /// By `mma.sync.m16n8k*` of elements of so many bits: 8, 16, 32 or 64. An instruction takes 32 bytes of each row, and 64 of 64-bit elements.
    Mma {
        /// The bits of an element of the operands.
        element_bits: u32,
    },
    /// By fused multiply-adds. Each thread computes sums of its own, and reads both operands from shared memory.
    Fma,
}

impl Multiplier {
    /// The least extents of a product: of `m`, `n` and `k`.
    pub const fn least(self) -> [u32; 3] {
        match self {
            Multiplier::Mma { element_bits } => [16, 8, 8 * elements_of_a_word(element_bits)],
            Multiplier::Fma => [1, 1, 1],
        }
    }

    /// The neighbours along `k` that a thread has of each row of `a` and of each column of `b`.
    pub fn run(self, k: u32) -> u32 {
        match self {
            Multiplier::Mma { element_bits } => (k / 4).min(128 / element_bits),
            Multiplier::Fma => k.min(VECTOR),
        }
    }

    /// The least rows and columns for which another warp is of use.
    const fn of_a_warp(self) -> [u32; 2] {
        match self {
            Multiplier::Mma { .. } => [16, 8],
            Multiplier::Fma => [4, 8 * VECTOR],
        }
    }
}

/// The elements that a 32-bit register of an operand holds; a 64-bit element takes a register of its own.
const fn elements_of_a_word(element_bits: u32) -> u32 {
    if element_bits < 32 { 32 / element_bits } else { 1 }
}

/// The neighbours that a thread accesses at once where it multiplies by fused multiply-adds.
const VECTOR: u32 = 4;

/// The layouts of a matrix product: of `a` `[m, k]`, `b` `[k, n]` and the accumulator `[m, n]`, or of as many products as a first axis says.
///
/// An instruction adds a number of products to each sum, and the sum does not depend on which index of `k` is called the first. So a thread gets neighbours: the
/// fragments of the PTX ISA give it two 32-bit registers of neighbours an instruction, and these give it 16 bytes of neighbours along `k` for several
/// instructions. It loads them at once, from global memory as well. Both operands number `k` alike, also if their types differ.
///
/// ```text
/// 16 bits: k of a row   0 .. 7   8 .. 15   16 .. 23   24 .. 31
/// member                  0        1          2          3       of the group; elements 0 to 3 go to the first instruction, 4 to 7 to the second
/// ```
///
/// | elements | instruction | neighbours of a thread | instructions for them |
/// |---|---|---|---|
/// | 8 bits | `m16n8k32` | 16 | 2 |
/// | 16 bits | `m16n8k16` | 8 | 2 |
/// | 32 bits | `m16n8k8` | 4 | 2 |
/// | 64 bits | `m16n8k8` | 2 | 1 |
///
/// For fused multiply-adds, the layouts are plain: a thread has [4 neighbours of a row](Layout::nested) of each tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fragments {
    /// The layout of `[m, k]`.
    pub a: Layout,
    /// The layout of `[k, n]`.
    pub b: Layout,
    /// The layout of `[m, n]`.
    pub accumulator: Layout,
}

impl Fragments {
    /// The fragments for tiles of `[m, n, k]` or `[batch, m, n, k]`. Warps and CTAs divide the batch, then the accumulator along its longer side, and hold copies
    /// where the tile is too small for all of them.
    ///
    /// # Errors
    /// If there are other than three or four extents ([`LayoutError::Rank`]), if an extent is not a power of two or less than [`Multiplier::least`]
    /// ([`LayoutError::ElementCount`]), or a count is not a power of two.
    pub fn new(extents: &[u32], multiplier: Multiplier, num_warps: u32, num_ctas: u32) -> Result<Fragments, LayoutError> {
        let (batch, [m, n, k]) = match *extents {
            [m, n, k] => (None, [m, n, k]),
            [batch, m, n, k] => (Some(batch), [m, n, k]),
            _ => return Err(LayoutError::Rank { expected: 3, found: extents.len() }),
        };
        let least = multiplier.least();
        for (extent, least) in [m, n, k].into_iter().zip(least) {
            if extent < least {
                return Err(LayoutError::ElementCount { from: extent.into(), to: least.into() });
            }
        }
        let all = [batch.unwrap_or(1), m, n];
        let ctas = divided(all, multiplier.of_a_warp(), num_ctas);
        let own = [all[0] / ctas[0], (m / ctas[1]).max(least[0]), (n / ctas[2]).max(least[1])];
        let warps = divided(own, multiplier.of_a_warp(), num_warps);
        let parts = Parts { has_batch: batch.is_some(), all, ctas, own, warps };
        if multiplier == Multiplier::Fma { parts.for_fma(k) } else { parts.for_instructions(k, multiplier.run(k)) }
    }
}

/// The division of a product among CTAs and warps: numbers for the batch, for `m` and for `n`.
struct Parts {
    /// Without a batch, its numbers are 1, and tiles have no axis for it.
    has_batch: bool,
    /// The extents of the accumulator.
    all: [u32; 3],
    ctas: [u32; 3],
    /// The extents that one CTA has.
    own: [u32; 3],
    warps: [u32; 3],
}

impl Parts {
    /// The layouts for `mma.sync`. A thread has `run` neighbours along `k`.
    fn for_instructions(&self, k: u32, run: u32) -> Result<Fragments, LayoutError> {
        let ([_, m, n], [_, own_m, own_n], [_, row_warps, column_warps], [row, column]) = (self.all, self.own, self.warps, self.axes());
        let mut a = self.tiler([own_m, k])?;
        operand_of_runs(&mut a, run, [row, column], true)?;
        a.copies(Level::Warp, column_warps)?;
        a.extend(Level::Warp, row, row_warps)?;
        let mut b = self.tiler([k, own_n])?;
        operand_of_runs(&mut b, run, [column, row], false)?;
        b.extend(Level::Warp, column, column_warps)?;
        b.copies(Level::Warp, row_warps)?;
        let mut sums = self.tiler([own_m, own_n])?;
        accumulator(&mut sums, row, column);
        sums.extend(Level::Warp, column, column_warps)?;
        sums.extend(Level::Warp, row, row_warps)?;
        Ok(Fragments {
            a: self.finish(a, [column, row], [m, k])?,
            b: self.finish(b, [row, column], [k, n])?,
            accumulator: self.finish(sums, [column, row], [m, n])?,
        })
    }

    /// The layouts for fused multiply-adds. Both operands go through shared memory, so their warps lie as they like.
    fn for_fma(&self, k: u32) -> Result<Fragments, LayoutError> {
        let ([_, m, n], [_, own_m, own_n], [_, row_warps, column_warps]) = (self.all, self.own, self.warps);
        let of_operand = [row_warps * column_warps, 1];
        Ok(Fragments {
            a: self.plain([own_m, k], of_operand, [m, k])?,
            b: self.plain([k, own_n], of_operand, [k, n])?,
            accumulator: self.plain([own_m, own_n], [row_warps, column_warps], [m, n])?,
        })
    }

    /// A thread has neighbours along the columns of a tile, and a warp rows of them.
    fn plain(&self, own: [u32; 2], [row_warps, column_warps]: [u32; 2], all: [u32; 2]) -> Result<Layout, LayoutError> {
        let ([row, column], lanes) = (self.axes(), (own[1] / VECTOR).clamp(1, 8));
        let mut tiler = self.tiler(own)?;
        tiler.extend(Level::Register, column, VECTOR.min(own[1]))?;
        tiler.extend(Level::Lane, column, lanes)?;
        tiler.extend(Level::Lane, row, 32 / lanes)?;
        tiler.extend(Level::Warp, column, column_warps)?;
        tiler.extend(Level::Warp, row, row_warps)?;
        self.finish(tiler, [column, row], all)
    }

    /// The axes of rows and columns.
    fn axes(&self) -> [usize; 2] {
        if self.has_batch { [1, 2] } else { [0, 1] }
    }

    fn with_batch(&self, [batch, rows, columns]: [u32; 3]) -> Vec<u32> {
        if self.has_batch { vec![batch, rows, columns] } else { vec![rows, columns] }
    }

    fn tiler(&self, [rows, columns]: [u32; 2]) -> Result<Tiler, LayoutError> {
        Tiler::new(&self.with_batch([self.own[0], rows, columns]))
    }

    /// Repetitions in registers are numbered along the first axis of `order`, then the second, then along the batch.
    fn finish(&self, mut tiler: Tiler, order: [usize; 2], [rows, columns]: [u32; 2]) -> Result<Layout, LayoutError> {
        if self.has_batch {
            tiler.extend(Level::Warp, 0, self.warps[0])?;
        }
        let order = [&order[..], if self.has_batch { &[0] } else { &[] }].concat();
        tiler.finish(&order)?.over_blocks(&self.with_batch([self.all[0], rows, columns]), &self.with_batch(self.ctas))
    }
}

/// So many parts along each axis of accumulators `[batch, m, n]`: the batch is divided first, then the longer side, and no part is smaller than `least` rows and
/// columns. What is left divides nothing.
fn divided([batch, m, n]: [u32; 3], least: [u32; 2], count: u32) -> [u32; 3] {
    let mut parts = [batch.min(count), 1, 1];
    while parts.iter().product::<u32>() < count {
        let [rows, columns] = [m / parts[1], n / parts[2]];
        let is_column = rows < 2 * least[0] || (columns >= 2 * least[1] && columns > rows);
        parts[1 + usize::from(is_column)] *= 2;
    }
    parts
}

/// Repetitions of an instruction are numbered along columns first.
const COLUMNS_FIRST: [usize; 2] = [1, 0];

impl Layout {
    /// The accumulators of `mma.sync.m16n8k*` with 32-bit C and D. `shape` is `[m, n]`, and `warps` has the same axes; the warps along `n`
    /// are numbered first. Larger tiles repeat the instruction in registers, along `n` first. PTX ISA, "Matrix fragments for mma.m16n8k16
    /// with floating point type", figure of C and D.
    ///
    /// # Errors
    /// If `shape` is not a valid 2-d shape, or an entry of `warps` is not a power of two.
    pub fn mma_accumulator(shape: &[u32], warps: [u32; 2]) -> Result<Layout, LayoutError> {
        let mut tiler = matrix_tiler(shape)?;
        accumulator(&mut tiler, 0, 1);
        tiler.extend(Level::Warp, 1, warps[1])?;
        tiler.extend(Level::Warp, 0, warps[0])?;
        tiler.finish(&COLUMNS_FIRST)
    }

    /// Operand A of `mma.sync.m16n8k(256 / element_bits)`. `shape` is `[m, k]`; `warps` are those of the accumulator, `[m, n]`, and the
    /// warps along `n` hold copies. Registers repeat along `k` first. PTX ISA, "Matrix fragments for mma.m16n8k8, .m16n8k16, .m16n8k32",
    /// figures of A: a 32-bit register holds 32 / element_bits consecutive columns. The second register is 8 rows down, the third is half
    /// of `k` to the right.
    ///
    /// # Errors
    /// If elements do not have 8, 16 or 32 bits, `shape` is not a valid 2-d shape, or an entry of `warps` is not a power of two.
    pub fn mma_operand_a(shape: &[u32], element_bits: u32, warps: [u32; 2]) -> Result<Layout, LayoutError> {
        let mut tiler = operand(shape, element_bits, 0)?;
        tiler.copies(Level::Warp, warps[1])?;
        tiler.extend(Level::Warp, 0, warps[0])?;
        tiler.finish(&COLUMNS_FIRST)
    }

    /// Operand B of `mma.sync.m16n8k(256 / element_bits)`. `shape` is `[k, n]`; `warps` are those of the accumulator, `[m, n]`, and the
    /// warps along `m` hold copies. Registers repeat along `k` first. PTX ISA, the figures of B: the transpose of A without the second 8
    /// columns.
    ///
    /// # Errors
    /// If elements do not have 8, 16 or 32 bits, `shape` is not a valid 2-d shape, or an entry of `warps` is not a power of two.
    pub fn mma_operand_b(shape: &[u32], element_bits: u32, warps: [u32; 2]) -> Result<Layout, LayoutError> {
        let mut tiler = operand(shape, element_bits, 1)?;
        tiler.extend(Level::Warp, 1, warps[1])?;
        tiler.copies(Level::Warp, warps[0])?;
        tiler.finish(&[0, 1])
    }

    /// The 32-bit accumulators of `wgmma.mma_async.m64nNk*`, where N = `instruction_n` is a power of two. The four warps of a warpgroup
    /// hold 16 rows each; further warpgroups are adjacent along `m`. Larger tiles repeat the instruction in registers, along `n` first. PTX
    /// ISA, "Register fragments for wgmma.mma_async.m64nNk16", figure of D.
    ///
    /// # Errors
    /// If `shape` is not a valid 2-d shape, or `instruction_n` or `num_warps` is not a power of two.
    pub fn wgmma_accumulator(shape: &[u32], instruction_n: u32, num_warps: u32) -> Result<Layout, LayoutError> {
        let mut tiler = matrix_tiler(shape)?;
        accumulator(&mut tiler, 0, 1);
        if !instruction_n.is_power_of_two() {
            return Err(LayoutError::NotAPowerOfTwo { value: instruction_n });
        }
        tiler.extend(Level::Register, 1, (instruction_n / 8).max(1))?;
        tiler.extend(Level::Warp, 0, num_warps)?;
        tiler.finish(&COLUMNS_FIRST)
    }

    /// Operand A of `wgmma.mma_async` in registers. `shape` is `[m, k]`, and the warps are those of [`Layout::wgmma_accumulator`]. Within a
    /// warp the fragment is operand A of `mma.sync`. PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16", figure of A.
    ///
    /// # Errors
    /// If elements do not have 8, 16 or 32 bits, `shape` is not a valid 2-d shape, or `num_warps` is not a power of two.
    pub fn wgmma_operand_a(shape: &[u32], element_bits: u32, num_warps: u32) -> Result<Layout, LayoutError> {
        Self::mma_operand_a(shape, element_bits, [num_warps, 1])
    }
}

/// The accumulators of one instruction.
fn accumulator(tiler: &mut Tiler, row: usize, column: usize) {
    tiler.bit(Level::Register, column, 1);
    tiler.bit(Level::Register, row, 8);
    members_and_groups(tiler, row, column, 2);
}

/// Operand A for `row_axis` 0. For `row_axis` 1 the transpose of A without its lower half, which is operand B.
fn operand(shape: &[u32], element_bits: u32, row_axis: usize) -> Result<Tiler, LayoutError> {
    if ![8, 16, 32].contains(&element_bits) {
        return Err(LayoutError::ElementBits { bits: element_bits });
    }
    let mut tiler = matrix_tiler(shape)?;
    let word = 32 / element_bits;
    tiler.extend(Level::Register, 1 - row_axis, word)?;
    if row_axis == 0 {
        tiler.bit(Level::Register, 0, 8);
    }
    tiler.bit(Level::Register, 1 - row_axis, 4 * word);
    members_and_groups(&mut tiler, row_axis, 1 - row_axis, word);
    Ok(tiler)
}

/// As [`operand`], with runs of neighbours along `k` in a thread, which come before the lower half of the rows. `row` is the axis of the groups.
fn operand_of_runs(tiler: &mut Tiler, run: u32, [row, k]: [usize; 2], has_lower_half: bool) -> Result<(), LayoutError> {
    tiler.extend(Level::Register, k, run)?;
    if has_lower_half {
        tiler.bit(Level::Register, row, 8);
    }
    members_and_groups(tiler, row, k, run);
    Ok(())
}

fn members_and_groups(tiler: &mut Tiler, row: usize, column: usize, member_step: u32) {
    for step in [member_step, 2 * member_step] {
        tiler.bit(Level::Lane, column, step);
    }
    for step in [1, 2, 4] {
        tiler.bit(Level::Lane, row, step);
    }
}

fn matrix_tiler(shape: &[u32]) -> Result<Tiler, LayoutError> {
    if shape.len() == 2 { Tiler::new(shape) } else { Err(LayoutError::Rank { expected: 2, found: shape.len() }) }
}
