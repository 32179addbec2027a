//! Stores of blocks: each warp writes its rows of a tile to shared memory, from which one of its threads copies them to the tensor.
//!
//! The rows are copied in parts of 128 bytes. A warp has memory for two parts: while the hardware copies one, the warp writes the other one. So no warp waits for another.
//! The parts have the swizzled order of a [`SharedBlock`], in which the eight rows that `stmatrix` writes lie in different banks.

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
    pub(crate) fn store_block(&mut self, tensor: Tensor<'_>, value: Value) {
        let extents = self.func.ty(value).extents();
        let (columns, bytes) = (extents[1] as u32, self.func.ty(value).dtype().bytes() as u32);
        let block = staged(self.func, value);
        let (map, corner) = self.mapped(tensor, block);
        let staging = self.rings.staging.expect("a consumer that stores blocks has memory for them");
        let leads = self.rings.leads_warp.expect("a consumer stores blocks");
        let (thread, warp) = (self.thread(), self.reg(Class::B32));
        asm!(self, "shr.u32 {warp}, {thread}, 5");
        let [own, row] = [0; 2].map(|_| self.reg(Class::B32));
        let memory = self.shared_address(None);
        asm!(self, "mad.lo.s32 {own}, {warp}, {STAGING_BYTES}, {memory}");
        asm!(self, "add.s32 {own}, {own}, {staging}");
        asm!(self, "mad.lo.s32 {row}, {warp}, {STAGED_ROWS}, {}", corner[0]);
        let first = self.staged_address(own, block, bytes);

        let lanes = self.lanes(value);
        let parts = columns / block.shape[1];
        let groups = (extents[0] as u32).div_ceil(STAGED_ROWS * self.schedule.num_warps);
        let of_part = REGISTERS * (block.shape[1] / MATRIX) as usize;
        for number in 0..groups * parts {
            let (group, part) = (number / parts, number % parts);
            let half = number % 2 * STAGED_ROWS * block.row_bytes();
            // The last part of the tile before may be in the first half.
            let pending = u32::from(number > 0);
            asm!(self, "@{leads} cp.async.bulk.wait_group.read {pending}");
            asm!(self, "bar.warp.sync 0xffffffff");
            let registers: Vec<Reg> = (0..of_part).map(|register| lanes.get(number as usize * of_part + register)).collect();
            self.write_part(block, first, half, &registers);
            asm!(self, "fence.proxy.async.shared::cta");
            asm!(self, "bar.warp.sync 0xffffffff");
            let column = self.plus(corner[1], part * block.shape[1]);
            let row = self.plus(row, group * STAGED_ROWS * self.schedule.num_warps);
            let index = tensor_index(&corner, column, row);
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
    fn staged_address(&mut self, own: Reg, block: SharedBlock, bytes: u32) -> Reg {
        let thread = self.thread();
        let [row, chunk, line, address] = [0; 4].map(|_| self.reg(Class::B32));
        let halves = if bytes == 2 {
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
}

/// The part of a stored tile that an instruction copies.
pub(crate) fn staged(func: &Function, tile: Value) -> SharedBlock {
    let (columns, bytes) = (func.ty(tile).extents()[1] as u32, func.ty(tile).dtype().bytes() as u32);
    SharedBlock::staged(columns, bytes).expect("a verified block has whole chunks")
}
