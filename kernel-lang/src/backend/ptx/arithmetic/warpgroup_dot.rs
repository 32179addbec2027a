//! Products of blocks in shared memory, by `wgmma` (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions").
//!
//! A descriptor names an operand: the address of its first element, the bytes between groups of eight rows, those between atoms, and the swizzle. All are multiples of 16
//! bytes, and only the address changes from one instruction to the next. It is computed from the number of the warpgroup and the position of the ring, which are the same in
//! all threads of a warp.

use std::collections::BTreeSet;

use crate::dtype::Dtype;
use crate::ir::rewrite::use_counts;
use crate::ir::{Function, Handle, Op, Precision, Value};
use crate::layout::SharedBlock;

use crate::backend::ptx::arithmetic::dot::list;
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

/// The first operand of an instruction.
enum Left {
    /// In shared memory.
    Block(SharedBlock),
    /// In registers, four for an instruction.
    Registers(Vec<Reg>),
}

impl Emitter<'_> {
    /// `acc + a * b`. The sums are in the registers of the accumulators, unless these have other uses. Each product is a group of its own.
    pub(crate) fn warpgroup_dot(&mut self, [a, b, acc]: [Value; 3], swapped: bool, in_flight: bool, result: Value) {
        let [left, right] = if swapped { [b, a] } else { [a, b] };
        let dtypes = [left, right].map(|operand| self.func.ty(operand).dtype());
        // The transpose of a product is that of the transposed operands in the other order.
        let block = |own: &Self, operand: Value| {
            let slot = own.rings.block(operand);
            (slot.address, if swapped { slot.block.transposed() } else { slot.block })
        };
        let (address, right) = block(self, right);
        let [depth, columns] = right.shape;
        let groups = self.schedule.num_warps / WARPS;
        if dtypes[0].is_int() && dtypes[0] != dtypes[1] {
            self.ptx_version = self.ptx_version.max(MIXED_INTEGERS_VERSION);
        }
        let sums = self.accumulators(acc);
        // The blocks, with their addresses and the axes of the sum.
        let mut blocks = vec![(address, right, 0)];
        let left = if self.func.ty(left).is_tile() {
            Left::Registers(self.left_registers(left))
        } else {
            let (address, left) = block(self, left);
            blocks.insert(0, (self.group_address(address, left, groups), left, 1));
            Left::Block(left)
        };
        let high: Vec<Reg> = blocks.iter().map(|(_, block, _)| self.high_word(*block)).collect();
        let words: Vec<[Reg; 2]> =
            blocks.iter().zip(high).map(|((address, block, depth), high)| [self.low_word(*address, *block, *depth), high]).collect();
        let adds = self.reg(Class::Pred);
        asm!(self, "setp.eq.u32 {adds}, 0, 0");
        asm!(self, "wgmma.fence.sync.aligned");
        let step = DEPTH_BYTES / dtypes[0].bytes() as u32;
        let types = [sum_type(self.func.ty(acc).dtype()), factor_type(dtypes[0]), factor_type(dtypes[1])].join(".");
        let modifiers = match dtypes[0] {
            // Neither operand is negated. In shared memory, the contiguous axis may be any one.
            Dtype::F16 | Dtype::Bf16 => {
                let orders: Vec<String> =
                    blocks.iter().map(|(_, block, depth)| format!(", {}", u8::from(block.contiguous != *depth))).collect();
                format!(", 1, 1{}", orders.concat())
            }
            dtype if dtype.is_float() => ", 1, 1".to_string(),
            _ => String::new(),
        };
        // An instruction has half of a sum's columns in each thread.
        let of_part = (columns / 2) as usize;
        for (part, sums) in sums.chunks(of_part).enumerate() {
            for (number, k) in (0..depth).step_by(step as usize).enumerate() {
                let a = match &left {
                    Left::Block(block) => self.descriptor(words[0], block.unswizzled([part as u32 * ROWS * groups, k])).to_string(),
                    Left::Registers(registers) => {
                        let begin = 4 * (part * (depth / step) as usize + number);
                        list(&registers[begin..begin + 4])
                    }
                };
                let b = self.descriptor(words[words.len() - 1], right.unswizzled([k, 0]));
                let sums = list(sums);
                asm!(self, "wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k{step}.{types} {sums}, {a}, {b}, {adds}{modifiers}");
            }
        }
        asm!(self, "wgmma.commit_group.sync.aligned");
        if !in_flight {
            asm!(self, "wgmma.wait_group.sync.aligned 0");
        }
        self.define(result, Lanes::Each(sums));
    }

    /// The registers of an operand.
    fn left_registers(&mut self, left: Value) -> Vec<Reg> {
        if !self.rings.is_rounded(self.func, left) {
            return self.operand(left, Precision::Tf32).registers;
        }
        let (lanes, count) = (self.lanes(left), self.lane_count(left));
        let word = |register: usize| {
            let word = self.reg(Class::B32);
            asm!(self, "mov.b32 {word}, {}", lanes.get(register));
            word
        };
        (0..count).map(word).collect()
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

    /// The high word of a descriptor: the bytes between groups of rows, and the swizzle.
    fn high_word(&mut self, block: SharedBlock) -> Reg {
        let mode = match block.row_bytes() {
            128 => 1u32,
            64 => 2,
            _ => 3,
        };
        let high = self.reg(Class::B32);
        asm!(self, "mov.b32 {high}, {:#x}", (mode << 30) | (block.group_bytes() >> 4));
        high
    }

    /// The descriptor of the elements that many bytes behind the first one.
    fn descriptor(&mut self, [low, high]: [Reg; 2], bytes: u32) -> Reg {
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

/// The name of the type of operands in the instruction.
fn factor_type(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F16 => "f16",
        Dtype::Bf16 => "bf16",
        Dtype::F8E4M3 => "e4m3",
        Dtype::F8E5M2 => "e5m2",
        Dtype::I8 => "s8",
        Dtype::U8 => "u8",
        _ => "tf32",
    }
}

/// The name of the type of sums in the instruction.
fn sum_type(dtype: Dtype) -> &'static str {
    if dtype.is_int() { "s32" } else { "f32" }
}
