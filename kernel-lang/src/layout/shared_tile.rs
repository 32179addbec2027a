//! Tiles in shared memory that all threads fill, and of which each warp reads parts: the operands of matrix products.
//!
//! The threads that fill the tile hold it in one layout, of coalesced loads. A warp reads a part in the layout of a fragment. As for a conversion
//! ([`SharedPlan`](super::SharedPlan)), the memory is a swizzle for which both accesses are free of bank conflicts.
//!
//! Eight neighbouring lanes, which copy a line of the L2, write to one row of all banks. Products of `bf16` whose lanes wrote to eight rows ran at 210 TFLOP/s, those with two rows at
//! 324 (4096 x 4096 x 4096, H200).
//!
//! Fragments of 16-bit elements whose neighbours in memory lie in different lanes are read by `ldmatrix.trans`. It moves matrices of 8 rows of 16 bytes: each lane gives the
//! address of a row, and gets two elements of a column of each matrix. So which lane holds what before and after the instruction are two layouts whose bases trade places:
//!
//! ```text
//!                register bits          lane bits
//! addresses      0 1 2 : L2 L3 L4       0 1 2 : R0 L0 L1    3 4 : R1 R2      (the row of 8 elements; the number of the row; the number of the matrix)
//! fragment       0 1 2 : R0 R1 R2       0 1 2 3 4 : L0 L1 L2 L3 L4
//! ```
//!
//! Any rows can be the rows of a matrix. So the fragment can have runs of neighbours along the axis of the rows, as those of [`Fragments`](super::Fragments) do.

use super::shared::{Access, Memory, Side};
use super::{Layout, LayoutError, Level};

/// The elements of a row of a matrix.
const ROW: u32 = 8;
/// The bits of an element that `ldmatrix.trans` moves.
const MATRIX_BITS: u32 = 16;

/// A tile in shared memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedTile {
    /// The order of the elements.
    pub memory: Memory,
    /// The stores of the threads that fill the tile.
    pub store: Access,
    shape: Vec<u32>,
    element_bits: u32,
}

/// The loads of a part of a tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartAccess {
    /// The instructions. Those of matrices have the registers that they fill, and the addresses of rows.
    pub access: Access,
    /// Are the instructions `ldmatrix.trans`?
    pub by_matrices: bool,
    /// Registers that hold copies: `(register, the register it copies)`.
    pub copies: Vec<(u32, u32)>,
}

impl SharedTile {
    /// The tile for threads that hold it in the layout `filled`, and read parts like `part`.
    ///
    /// # Errors
    /// If both layouts have different numbers of threads, or more CTAs than one, or if elements do not have 8, 16, 32 or 64 bits.
    pub fn new(filled: &Layout, part: &Layout, element_bits: u32) -> Result<SharedTile, LayoutError> {
        if ![8, 16, 32, 64].contains(&element_bits) {
            return Err(LayoutError::ElementBits { bits: element_bits });
        }
        for level in [Level::Lane, Level::Warp, Level::Block] {
            if filled.bits(level) != part.bits(level) || (level == Level::Block && filled.bits(level) > 0) {
                return Err(LayoutError::ThreadsDiffer { level });
            }
        }
        let byte_bits = (element_bits / 8).trailing_zeros() as usize;
        let (source, own) = (Side::source(filled), Side::part_of(filled.shape(), part));
        let rows = matrix_rows(&own, element_bits);
        let tiles = [Some(&own), rows.as_ref()].into_iter().flatten().map(|side| {
            let memory = Memory::between(side, &source, byte_bits);
            let store = Access::new(&source, &memory, byte_bits, true)?;
            let tile = SharedTile { memory, store, shape: filled.shape().to_vec(), element_bits };
            let load = tile.load(&own)?;
            // Elements are filled once, and read by several warps.
            let parts = filled.elements() / part.elements().max(1);
            let cost = u64::from(tile.store.total_wavefronts()) + parts * u64::from(load.access.total_wavefronts());
            Some((cost, tile))
        });
        let tiles: Vec<(u64, SharedTile)> = tiles.collect::<Option<_>>().ok_or(LayoutError::NotSurjective)?;
        tiles.into_iter().min_by_key(|(cost, _)| *cost).map(|(_, tile)| tile).ok_or(LayoutError::NotSurjective)
    }

    /// The loads of the part with the layout `part` that begins at the index `first`. `None` if the tile has no such part.
    pub fn part(&self, part: &Layout, first: &[u32]) -> Option<PartAccess> {
        let mut own = self.load(&Side::part_of(&self.shape, part))?;
        let begin = self.memory.offset(flat(&self.shape, first))?;
        for instruction in &mut own.access.instructions {
            instruction.offset ^= begin;
        }
        (begin % own.access.vector == 0).then_some(own)
    }

    fn load(&self, side: &Side) -> Option<PartAccess> {
        load_of(side, &self.memory, self.element_bits)
    }
}

impl PartAccess {
    /// The loads of all elements of a tile with this order of its elements, as the layout has them. `None` if the memory lacks elements.
    pub fn of_memory(memory: &Memory, layout: &Layout, element_bits: u32) -> Option<PartAccess> {
        load_of(&Side::source(layout), memory, element_bits)
    }
}

/// The loads with the fewest wavefronts.
fn load_of(side: &Side, memory: &Memory, element_bits: u32) -> Option<PartAccess> {
    let byte_bits = (element_bits / 8).trailing_zeros() as usize;
    let of = |access: Access, by_matrices: bool| PartAccess { access, by_matrices, copies: side.register_copies() };
    let plain = Access::new(side, memory, byte_bits, false).map(|access| of(access, false));
    let matrices = matrix_rows(side, element_bits)
        .and_then(|rows| Access::new(&rows, memory, byte_bits, false))
        .filter(is_of_rows)
        .map(|access| of(access, true));
    plain.into_iter().chain(matrices).min_by_key(|load| load.access.total_wavefronts())
}

/// Does each instruction read whole rows, in the order of their elements?
fn is_of_rows(access: &Access) -> bool {
    let in_order =
        |registers: &[u32]| registers[0].is_multiple_of(ROW) && registers.iter().zip(registers[0]..).all(|(own, next)| *own == next);
    access.vector == ROW && access.instructions.iter().all(|instruction| in_order(&instruction.registers))
}

/// The layout of the addresses with which `ldmatrix.trans` fills the registers of a side.
fn matrix_rows(side: &Side, element_bits: u32) -> Option<Side> {
    let (&[first, second, third, ref rest @ ..], &[l0, l1, ref row @ ..]) = (&side.registers[..], &side.lanes[..]) else { return None };
    let is_known = element_bits == MATRIX_BITS && row.len() == 3;
    is_known.then(|| Side {
        registers: [row, rest].concat(),
        lanes: vec![first, l0, l1, second, third],
        warps: side.warps.clone(),
        blocks: side.blocks.clone(),
    })
}

/// The row-major index of an element.
fn flat(shape: &[u32], index: &[u32]) -> u64 {
    shape.iter().zip(index).fold(0, |flat, (extent, index)| flat * u64::from(*extent) + u64::from(*index))
}

impl Side {
    /// The elements of the threads of a part, in a tile of this shape.
    fn part_of(shape: &[u32], part: &Layout) -> Side {
        let bases = |level| {
            let bits = 0..part.bits(level);
            bits.map(|bit| flat(shape, &part.basis(level, bit).unwrap_or_default())).collect()
        };
        Side { registers: bases(Level::Register), lanes: bases(Level::Lane), warps: bases(Level::Warp), blocks: bases(Level::Block) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Fragments, Multiplier};

    /// The layout of coalesced loads of `vector` neighbours along an axis of a matrix.
    fn coalesced(shape: [u32; 2], axis: usize, vector: u32, warps: u32) -> Layout {
        let along = (shape[axis] / vector).min(32);
        let pick = |own: u32, other: u32| if axis == 1 { [other, own] } else { [own, other] };
        let order = if axis == 1 { [1, 0] } else { [0, 1] };
        Layout::blocked(&shape, &pick(vector, 1), &pick(along, 32 / along), &pick(1, warps), &order).expect("powers of two")
    }

    /// Reads of fragments, of each type and along each axis. No access has conflicts, and all are as wide as they can be.
    #[test]
    fn accesses_are_free_of_conflicts() {
        for bits in [8, 16, 32, 64] {
            let step = 512 / bits;
            for (rows, columns, depth, warps) in
                [(128, 128, 2 * step, 4), (128, 256, 2 * step, 8), (64, 64, step, 4), (16, 128, 4 * step, 4)]
            {
                let fragments =
                    Fragments::new(&[rows, columns, step], Multiplier::Mma { element_bits: bits }, warps, 1).expect("it is large enough");
                for (part, shape, sum_axis) in [(&fragments.a, [rows, depth], 1), (&fragments.b, [depth, columns], 0)] {
                    for contiguous in [0, 1] {
                        let case = format!("{bits} bits, {shape:?}, contiguous along {contiguous}");
                        let filled = coalesced(shape, contiguous, 128 / bits, warps);
                        let tile = SharedTile::new(&filled, part, bits).expect(&case);
                        assert_eq!(tile.store.bank_conflicts, 0, "{case}");
                        let row: u32 = tile.store.thread.lane[..3].iter().fold(0, |all, offset| all | offset);
                        assert!(
                            tile.store.vector * bits < 128 || row * bits < 8 * 128,
                            "{case}: eight chunks of a line lie in several rows"
                        );
                        for at in (0..depth).step_by(step as usize) {
                            let mut first = [0; 2];
                            first[sum_axis] = at;
                            let load = tile.part(part, &first).expect(&case);
                            assert_eq!(load.access.bank_conflicts, 0, "{case}");
                            let is_along_sum = contiguous == sum_axis;
                            assert_eq!(load.by_matrices, bits == 16 && !is_along_sum, "{case}");
                            if bits == 16 || is_along_sum {
                                assert_eq!((tile.store.vector, load.access.vector), (128 / bits, 128 / bits), "{case}");
                            }
                        }
                    }
                }
            }
        }
    }

    /// Moves the elements of a part by its instructions, as the hardware does, and compares them with its layout.
    #[test]
    fn parts_have_their_elements() {
        let fragments = Fragments::new(&[64, 64, 32], Multiplier::Mma { element_bits: 16 }, 4, 1).expect("it is large enough");
        for (part, shape, first) in [(&fragments.a, [64, 64], [0, 32]), (&fragments.b, [64, 64], [32, 0])] {
            for (contiguous, vector) in [(0, 8), (1, 8), (0, 4), (1, 4), (0, 1), (1, 1)] {
                let tile = SharedTile::new(&coalesced(shape, contiguous, vector, 4), part, 16).expect("the threads are the same");
                let load = tile.part(part, &first).expect("it is a part");
                let element = |lane: u32, warp: u32, number: usize, at: u32| {
                    let instruction = &load.access.instructions[number];
                    tile.memory.element((instruction.offset ^ load.access.thread.at(lane, warp, 0)) + at)
                };
                for (warp, lane) in (0..4).flat_map(|warp| (0..32).map(move |lane| (warp, lane))) {
                    for (number, instruction) in load.access.instructions.iter().enumerate() {
                        for (at, register) in instruction.registers.iter().enumerate() {
                            let found = if load.by_matrices {
                                // Register `at` is element `at % 2` of the pair of matrix `at / 2`: rows 2 * member and the next one, column `lane / 4`.
                                let row = 2 * (lane % 4) + at as u32 % 2;
                                element(8 * (at as u32 / 2) + row, warp, number, lane / 4)
                            } else {
                                element(lane, warp, number, at as u32)
                            };
                            let index = part.apply(*register, lane, warp, 0);
                            let wanted = flat(&shape, &[index[0] + first[0], index[1] + first[1]]);
                            assert_eq!(found, wanted, "contiguous along {contiguous}, {vector} neighbours, register {register}");
                        }
                    }
                }
            }
        }
    }
}
