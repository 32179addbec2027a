//! Stores of blocks: each warp writes its rows of a tile to shared memory, from which one of its threads copies them to the tensor.
//!
//! The rows are copied in parts of 128 bytes. A warp has memory for two parts: while the hardware copies one, the warp writes the other one. So no warp waits for another.
//! The parts have the swizzled order of a [`SharedBlock`], in which the eight rows that `stmatrix` writes lie in different banks.
//!
//! Of a tile whose product is swapped, a warp has sixteen columns, and the parts have as many rows as fit into the same memory.

use crate::ir::{Function, Value};
use crate::layout::{STAGED_ROWS, STAGING_BYTES, SharedBlock};

use crate::backend::ptx::Emitter;
use crate::backend::ptx::roles::{Tensor, tensor_index};
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// The rows of a matrix of `stmatrix`.
const MATRIX: u32 = 8;
/// The registers of a thread for sixteen rows and eight columns of accumulators.
const REGISTERS: usize = 4;
/// The bytes of a chunk.
const CHUNK: u32 = 16;

impl Emitter<'_> {
    pub(crate) fn store_block(&mut self, tensor: Tensor<'_>, value: Value, swapped: bool) {
        let extents = self.func.ty(value).extents();
        let [rows, columns] = [extents[0] as u32, extents[1] as u32];
        let block = staged(self.func, value, swapped);
        let (map, corner) = self.mapped(tensor, block);
        let staging = self.rings.staging.expect("a consumer that stores blocks has memory for them");
        let leads = self.rings.leads_warp.expect("a consumer stores blocks");
        let (thread, warp) = (self.thread(), self.reg(Class::B32));
        asm!(self, "shr.u32 {warp}, {thread}, 5");
        let [own, begin] = [0; 2].map(|_| self.reg(Class::B32));
        let memory = self.shared_address(None);
        asm!(self, "mad.lo.s32 {own}, {warp}, {STAGING_BYTES}, {memory}");
        asm!(self, "add.s32 {own}, {own}, {staging}");
        // The axis that warps divide, and the one along which a warp has parts.
        let (divided, along) = (usize::from(swapped), usize::from(!swapped));
        asm!(self, "mad.lo.s32 {begin}, {warp}, {STAGED_ROWS}, {}", corner[divided]);
        let first = if swapped { self.swapped_address(own, block) } else { self.staged_address(own, block) };

        let lanes = self.lanes(value);
        let (of_warps, of_parts) = if swapped { (columns, rows) } else { (rows, columns) };
        let parts = of_parts / block.shape[along];
        let groups = of_warps.div_ceil(STAGED_ROWS * self.schedule.num_warps);
        let of_part = REGISTERS * (block.shape[along] / MATRIX) as usize;
        for number in 0..groups * parts {
            let (group, part) = (number / parts, number % parts);
            let half = number % 2 * block.bytes();
            // The last part of the tile before may be in the first half.
            let pending = u32::from(number > 0);
            asm!(self, "@{leads} cp.async.bulk.wait_group.read {pending}");
            asm!(self, "bar.warp.sync 0xffffffff");
            let registers: Vec<Reg> = (0..of_part).map(|register| lanes.get(number as usize * of_part + register)).collect();
            if swapped {
                self.write_swapped_part(block, first, half, &registers);
            } else {
                self.write_part(block, first, half, &registers);
            }
            asm!(self, "fence.proxy.async.shared::cta");
            asm!(self, "bar.warp.sync 0xffffffff");
            let of_part = self.plus(corner[along], part * block.shape[along]);
            let of_warp = self.plus(begin, group * STAGED_ROWS * self.schedule.num_warps);
            let index = if swapped { tensor_index(&corner, of_warp, of_part) } else { tensor_index(&corner, of_part, of_warp) };
            asm!(
                self,
                "@{leads} cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group [{map}, {index}], [{own}+{half}]",
                corner.len()
            );
            asm!(self, "@{leads} cp.async.bulk.commit_group");
        }
    }

    /// The address to which a thread writes its first elements of a part, in the warp's memory. Those of later columns differ by an `xor` with a multiple of a chunk.
    ///
    /// For elements of 16 bits, these are the addresses of `stmatrix`: of row `lane % 16`, and of the first or the second chunk. For those of 32 bits, they are the thread's
    /// own: two neighbours of row `lane / 4`.
    fn staged_address(&mut self, own: Reg, block: SharedBlock) -> Reg {
        let thread = self.thread();
        let [row, chunk, line, address] = [0; 4].map(|_| self.reg(Class::B32));
        let halves = if block.element_bytes == 2 {
            asm!(self, "and.b32 {row}, {thread}, 15");
            asm!(self, "bfe.u32 {chunk}, {thread}, 4, 1");
            None
        } else {
            asm!(self, "bfe.u32 {row}, {thread}, 2, 3");
            asm!(self, "bfe.u32 {chunk}, {thread}, 1, 1");
            let odd = self.reg(Class::B32);
            asm!(self, "and.b32 {odd}, {thread}, 1");
            Some(odd)
        };
        // The chunk is xored with bits of the row: of the line of 128 bytes in which the row is.
        let rows_in_line = 128 / block.row_bytes();
        asm!(self, "shr.u32 {line}, {row}, {}", rows_in_line.trailing_zeros());
        asm!(self, "and.b32 {line}, {line}, {}", block.row_bytes() / CHUNK - 1);
        asm!(self, "xor.b32 {chunk}, {chunk}, {line}");
        asm!(self, "mad.lo.s32 {address}, {row}, {}, {own}", block.row_bytes());
        asm!(self, "mad.lo.s32 {address}, {chunk}, {CHUNK}, {address}");
        if let Some(odd) = halves {
            asm!(self, "mad.lo.s32 {address}, {odd}, 8, {address}");
        }
        address
    }

    /// Writes the registers of a part in its order: those of eight columns are two neighbours of a row, and of the row eight rows below.
    fn write_part(&mut self, block: SharedBlock, first: Reg, half: u32, registers: &[Reg]) {
        // In each step, two chunks.
        let is_half = block.element_bytes == 2;
        let step = if is_half { 2 * REGISTERS } else { REGISTERS };
        for (number, registers) in registers.chunks(step).enumerate() {
            let address = match number as u32 * 2 * CHUNK {
                0 => first,
                moved => {
                    let address = self.reg(Class::B32);
                    asm!(self, "xor.b32 {address}, {first}, {moved}");
                    address
                }
            };
            if is_half {
                let words: Vec<String> = registers.chunks(2).map(|pair| self.pack(pair).to_string()).collect();
                asm!(self, "stmatrix.sync.aligned.m8n8.x{}.shared.b16 [{address}+{half}], {{{}}}", words.len(), words.join(", "));
            } else {
                for (rows, pair) in registers.chunks(2).enumerate() {
                    let at = half + rows as u32 * MATRIX * block.row_bytes();
                    asm!(self, "st.shared.v2.f32 [{address}+{at}], {{{}, {}}}", pair[0], pair[1]);
                }
            }
        }
    }

    /// As [`Emitter::staged_address`], of a part with sixteen columns, whose rows the accumulators number as columns.
    ///
    /// For elements of 16 bits, these are the addresses of a transposing `stmatrix`: of the chunk `lane / 8 % 2` of row `lane % 8`, or of the row eight rows below. For those
    /// of 32 bits, they are the thread's own: column `lane / 4` of row `2 * (lane % 4)`.
    fn swapped_address(&mut self, own: Reg, block: SharedBlock) -> Reg {
        let thread = self.thread();
        let [row, chunk, line, rest, address] = [0; 5].map(|_| self.reg(Class::B32));
        if block.element_bytes == 2 {
            // Four rows are a line of 128 bytes.
            asm!(self, "and.b32 {row}, {thread}, 7");
            asm!(self, "bfe.u32 {chunk}, {thread}, 3, 1");
            asm!(self, "bfe.u32 {line}, {thread}, 2, 1");
            asm!(self, "bfe.u32 {rest}, {thread}, 4, 1");
            asm!(self, "mad.lo.s32 {row}, {rest}, {MATRIX}, {row}");
            asm!(self, "mad.lo.s32 {address}, {row}, {}, {own}", block.row_bytes());
        } else {
            // Two rows are a line.
            asm!(self, "and.b32 {line}, {thread}, 3");
            asm!(self, "bfe.u32 {chunk}, {thread}, 4, 1");
            asm!(self, "bfe.u32 {rest}, {thread}, 2, 2");
            asm!(self, "mad.lo.s32 {address}, {line}, {}, {own}", 2 * block.row_bytes());
            asm!(self, "mad.lo.s32 {address}, {rest}, 4, {address}");
        }
        asm!(self, "xor.b32 {chunk}, {chunk}, {line}");
        asm!(self, "mad.lo.s32 {address}, {chunk}, {CHUNK}, {address}");
        address
    }

    /// As [`Emitter::write_part`]: the registers of eight rows are two neighbours of a column, and of the column eight columns further.
    fn write_swapped_part(&mut self, block: SharedBlock, first: Reg, half: u32, registers: &[Reg]) {
        if block.element_bytes == 2 {
            for (number, registers) in registers.chunks(2 * REGISTERS).enumerate() {
                let words: Vec<String> = registers.chunks(2).map(|pair| self.pack(pair).to_string()).collect();
                let at = half + number as u32 * 2 * MATRIX * block.row_bytes();
                asm!(self, "stmatrix.sync.aligned.m8n8.x{}.trans.shared.b16 [{first}+{at}], {{{}}}", words.len(), words.join(", "));
            }
            return;
        }
        let second = self.reg(Class::B32);
        asm!(self, "xor.b32 {second}, {first}, {}", 2 * CHUNK);
        for (number, registers) in registers.chunks(REGISTERS).enumerate() {
            let at = half + number as u32 * MATRIX * block.row_bytes();
            for (address, pair) in [first, second].into_iter().zip(registers.chunks(2)) {
                asm!(self, "st.shared.f32 [{address}+{at}], {}", pair[0]);
                asm!(self, "st.shared.f32 [{address}+{}], {}", at + block.row_bytes(), pair[1]);
            }
        }
    }
}

/// The part of a stored tile that an instruction copies.
pub(crate) fn staged(func: &Function, tile: Value, swapped: bool) -> SharedBlock {
    let (extents, bytes) = (func.ty(tile).extents(), func.ty(tile).dtype().bytes() as u32);
    SharedBlock::staged([extents[0] as u32, extents[1] as u32], bytes, swapped).expect("a verified block has whole chunks")
}
