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
        let mut tiler = accumulator(shape)?;
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
        let mut tiler = accumulator(shape)?;
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

fn accumulator(shape: &[u32]) -> Result<Tiler, LayoutError> {
    let mut tiler = matrix_tiler(shape)?;
    tiler.bit(Level::Register, 1, 1);
    tiler.bit(Level::Register, 0, 8);
    members_and_groups(&mut tiler, 0, 2);
    Ok(tiler)
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
    members_and_groups(&mut tiler, row_axis, word);
    Ok(tiler)
}

fn members_and_groups(tiler: &mut Tiler, row_axis: usize, member_step: u32) {
    for step in [member_step, 2 * member_step] {
        tiler.bit(Level::Lane, 1 - row_axis, step);
    }
    for step in [1, 2, 4] {
        tiler.bit(Level::Lane, row_axis, step);
    }
}

fn matrix_tiler(shape: &[u32]) -> Result<Tiler, LayoutError> {
    if shape.len() == 2 { Tiler::new(shape) } else { Err(LayoutError::Rank { expected: 2, found: shape.len() }) }
}
