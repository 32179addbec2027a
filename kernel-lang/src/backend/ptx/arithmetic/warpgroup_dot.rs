//! Products of blocks in shared memory, by `wgmma` (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions").
//!
//! A descriptor names an operand: the address of its first element, the bytes between groups of eight rows, those between atoms, and the swizzle. All are multiples of 16
//! bytes, and only the address changes from one instruction to the next. It is computed from the number of the warpgroup and the position of the ring, which are the same in
//! all threads of a warp.

use std::collections::BTreeSet;

use crate::dtype::Dtype;
use crate::ir::rewrite::use_counts;
use crate::ir::{Function, Handle, Op, Value};
use crate::layout::SharedBlock;

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes};

/// The rows of an instruction.
const ROWS: u32 = 64;
/// The bytes of an operand's row that an instruction multiplies.
const DEPTH_BYTES: u32 = 32;
/// The PTX ISA version that multiplies integers with a sign by those without.
const MIXED_INTEGERS_VERSION: (u32, u32) = (8, 4);
/// The warps of a warpgroup.
const WARPS: u32 = 4;

/// The accumulators whose registers a product may overwrite: nothing else uses them, and they are made in each execution of its region, because a loop around the
/// product may begin each iteration with sums from outside.
pub(crate) fn in_place(func: &Function) -> BTreeSet<Value> {
    let uses = use_counts(func);
    let mut in_place = BTreeSet::new();
    for region in func.regions_under(func.body) {
        let region = func.region(region);
        let mut own: BTreeSet<Value> = region.params.iter().copied().collect();
        for inst in &region.insts {
            let Op::WarpgroupDot { acc, .. } = func.inst(*inst).op else { continue };
            if uses[acc.index()] == 1 && own.contains(&acc) {
                in_place.insert(acc);
            }
            own.insert(func.result(*inst));
        }
    }
    in_place
}

impl Emitter<'_> {
    /// `acc + a * b`. The sums are in the registers of the accumulators, unless these have other uses. Each product is a group of its own.
    pub(crate) fn warpgroup_dot(&mut self, [a, b, acc]: [Value; 3], swapped: bool, in_flight: bool, result: Value) {
        let dtype = self.func.ty(a).dtype();
        let mut dtypes = [a, b].map(|operand| self.func.ty(operand).dtype());
        let [mut left, mut right] = [a, b].map(|operand| self.rings.block(operand));
        if swapped {
            // The transpose of a product is that of the transposed operands in the other order.
            (left.block, right.block) = (left.block.transposed(), right.block.transposed());
            (left, right) = (right, left);
            dtypes.reverse();
        }
        let [rows, depth] = left.block.shape;
        let columns = right.block.shape[1];
        let groups = self.schedule.num_warps / WARPS;
        if dtypes[0].is_int() && dtypes[0] != dtypes[1] {
            self.ptx_version = self.ptx_version.max(MIXED_INTEGERS_VERSION);
        }
        let sums = self.accumulators(acc);
        let at = self.group_address(left.address, left.block, groups);
        let high = [left.block, right.block].map(|block| {
            let high = self.reg(Class::B32);
            asm!(self, "mov.b32 {high}, {:#x}", high_word(block));
            high
        });
        let low = [self.low_word(at, left.block, 1), self.low_word(right.address, right.block, 0)];
        let adds = self.reg(Class::Pred);
        asm!(self, "setp.eq.u32 {adds}, 0, 0");
        asm!(self, "wgmma.fence.sync.aligned");
        let step = DEPTH_BYTES / dtype.bytes() as u32;
        let types = [self.func.ty(acc).dtype(), dtypes[0], dtypes[1]].map(instruction_type).join(".");
        let modifiers = match dtype {
            // Neither operand is negated. The contiguous axis may be any one.
            Dtype::F16 | Dtype::Bf16 => {
                format!(", 1, 1, {}, {}", u8::from(left.block.contiguous == 0), u8::from(right.block.contiguous == 1))
            }
            dtype if dtype.is_float() => ", 1, 1".to_string(),
            _ => String::new(),
        };
        let of_part = sums.len() / (rows / (ROWS * groups)) as usize;
        for (part, sums) in sums.chunks(of_part).enumerate() {
            for k in (0..depth).step_by(step as usize) {
                let a = self.descriptor(low[0], high[0], left.block.unswizzled([part as u32 * ROWS * groups, k]));
                let b = self.descriptor(low[1], high[1], right.block.unswizzled([k, 0]));
                let registers: Vec<String> = sums.iter().map(Reg::to_string).collect();
                asm!(
                    self,
                    "wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k{step}.{types} {{{}}}, {a}, {b}, {adds}{modifiers}",
                    registers.join(", ")
                );
            }
        }
        asm!(self, "wgmma.commit_group.sync.aligned");
        if !in_flight {
            asm!(self, "wgmma.wait_group.sync.aligned 0");
        }
        self.define(result, Lanes::Each(sums));
    }

    /// The registers to which the instructions add: those of the accumulators, which a loop carries from one product to the next. Other accumulators are copied.
    fn accumulators(&mut self, acc: Value) -> Vec<Reg> {
        let (lanes, count) = (self.lanes(acc), self.lane_count(acc));
        let own: Vec<Reg> = (0..count).map(|register| lanes.get(register)).collect();
        if self.rings.in_place.contains(&acc) {
            return own;
        }
        let copy = |reg: Reg| {
            let copy = self.reg(reg.class);
            asm!(self, "mov.{} {copy}, {reg}", reg.class.suffix());
            copy
        };
        own.into_iter().map(copy).collect()
    }

    /// The address of the rows of this warpgroup.
    fn group_address(&mut self, address: Reg, block: SharedBlock, groups: u32) -> Reg {
        if groups == 1 {
            return address;
        }
        let [group, first, sum] = [0; 3].map(|_| self.reg(Class::B32));
        let thread = self.thread();
        asm!(self, "shr.u32 {group}, {thread}, {}", (32 * WARPS).trailing_zeros());
        // The assembler then knows that the number is the same in all threads of a warp.
        asm!(self, "shfl.sync.idx.b32 {first}, {group}, 0, 31, 0xffffffff");
        asm!(self, "mad.lo.s32 {sum}, {first}, {}, {address}", block.unswizzled([ROWS, 0]));
        sum
    }

    /// The low word of a descriptor: the address, and the bytes between atoms. `rows` is the axis of the operand's rows.
    fn low_word(&mut self, address: Reg, block: SharedBlock, depth_axis: usize) -> Reg {
        let [units, low] = [0; 2].map(|_| self.reg(Class::B32));
        // Of an operand whose neighbours lie along the sum, one atom is an instruction's, and the field is unused.
        let atoms = if block.contiguous == depth_axis { 1 } else { block.atom_bytes() >> 4 };
        asm!(self, "shr.u32 {units}, {address}, 4");
        asm!(self, "or.b32 {low}, {units}, {:#x}", atoms << 16);
        low
    }

    /// The descriptor of the elements that many bytes behind the first one.
    fn descriptor(&mut self, low: Reg, high: Reg, bytes: u32) -> Reg {
        let at = match bytes {
            0 => low,
            bytes => {
                let at = self.reg(Class::B32);
                asm!(self, "add.s32 {at}, {low}, {}", bytes >> 4);
                at
            }
        };
        let descriptor = self.reg(Class::B64);
        asm!(self, "mov.b64 {descriptor}, {{{at}, {high}}}");
        descriptor
    }
}

/// The name of a type in the instruction.
fn instruction_type(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F16 => "f16",
        Dtype::Bf16 => "bf16",
        Dtype::F8E4M3 => "e4m3",
        Dtype::F8E5M2 => "e5m2",
        Dtype::I8 => "s8",
        Dtype::U8 => "u8",
        Dtype::I32 => "s32",
        _ => "f32",
    }
}

/// The high word of a descriptor: the bytes between groups of rows, and the swizzle.
fn high_word(block: SharedBlock) -> u32 {
    let mode = match block.row_bytes() {
        128 => 1,
        64 => 2,
        _ => 3,
    };
    (mode << 30) | (block.group_bytes() >> 4)
}
