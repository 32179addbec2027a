//! Matrix products of `f32` with one rounding for each product, which no matrix instruction computes: by fused multiply-adds.
//!
//! Both operands go to shared memory. A thread adds up elements of the result, a few of each row and column, as
//! [`Fragments`](crate::layout::Fragments) says. For each index along `k`, it reads its elements of a column of `a` and of a row of `b`, and adds their outer
//! product to its sums.
//!
//! ```text
//! a [m, k]   rows of k + 4 elements, so that the rows that a warp reads at once lie in different banks
//! b [k, n]   row-major, behind a
//! ```

use std::collections::BTreeMap;

use crate::dtype::Dtype;
use crate::ir::Value;
use crate::layout::{Layout, Level};

use crate::backend::ptx::exchange::shared::WIDEST;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes};

/// The bytes of an element.
const BYTES: u32 = 4;
/// The elements of the widest access.
const WIDE: u32 = WIDEST / BYTES;
/// The steps along `k` that are written out. More of them are a loop.
const STEPS: u32 = 32;

/// A tile of one CTA in shared memory.
struct Stored {
    /// The offset of the tile.
    start: u32,
    /// The distance of neighbours along each axis, in bytes.
    strides: Vec<u32>,
    bytes: u32,
}

impl Stored {
    /// A tile whose rows have `slack` more elements than it.
    fn new(start: u32, layout: &Layout, slack: u32) -> Stored {
        let mut strides = vec![BYTES; layout.rank()];
        let mut bytes = BYTES;
        for (axis, stride) in strides.iter_mut().enumerate().rev() {
            *stride = bytes;
            let is_last = axis + 1 == layout.rank();
            bytes *= own_extent(layout, axis) + if is_last { slack } else { 0 };
        }
        Stored { start, strides, bytes }
    }
}

/// Both operands.
fn stored(left: &Layout, right: &Layout) -> [Stored; 2] {
    // Rows of fewer elements than an access has lie in few banks anyway.
    let slack = if own_extent(left, left.rank() - 1) >= WIDE { WIDE } else { 0 };
    let of_a = Stored::new(0, left, slack);
    let of_b = Stored::new(of_a.bytes.next_multiple_of(WIDEST), right, 0);
    [of_a, of_b]
}

/// The bytes of shared memory for both operands.
pub(crate) fn bytes(left: &Layout, right: &Layout) -> u32 {
    let [_, of_b] = stored(left, right);
    of_b.start + of_b.bytes
}

/// The elements along an axis that one CTA has.
fn own_extent(layout: &Layout, axis: usize) -> u32 {
    let levels = [Level::Register, Level::Lane, Level::Warp].into_iter();
    1 + levels
        .flat_map(|level| (0..layout.bits(level)).map(move |bit| (level, bit)))
        .fold(0, |all, (level, bit)| all | layout.basis_along(level, bit, axis))
}

/// The elements of an operand that a thread reads for one step along `k`.
struct Reads {
    address: Reg,
    /// The offset of each read, and how many elements it has.
    offsets: Vec<u32>,
    width: u32,
    /// For each register of the sums: the number of its element among those that are read.
    of_sum: Vec<usize>,
}

impl Emitter<'_> {
    /// `acc + a * b`.
    pub(crate) fn outer_products(&mut self, [a, b, acc]: [Value; 3], result: Value) {
        let [left, right, sums] = [a, b, acc].map(|x| self.layout(x).expect("tiles have layouts").clone());
        let column = sums.rank() - 1;
        let k = own_extent(&left, column);
        let [of_a, of_b] = stored(&left, &right);
        let range = self.scratch();
        for (x, layout, stored) in [(a, &left, &of_a), (b, &right, &of_b)] {
            self.store_plain(x, layout, stored, range.start);
        }
        self.barrier();

        // An element of the result needs its row of `a` and its column of `b`.
        let without = |strides: &[u32], axis: usize| {
            strides.iter().enumerate().map(|(at, stride)| if at == axis { 0 } else { *stride }).collect::<Vec<_>>()
        };
        let depth = k.min(WIDE);
        let rows = self.reads(&sums, &without(&of_a.strides, column), range.start + of_a.start, (depth, 1));
        let neighbours = own_extent(&sums, column).min(WIDE);
        let columns = self.reads(&sums, &without(&of_b.strides, column - 1), range.start + of_b.start, (neighbours, neighbours));
        let row_bytes = of_b.strides[column - 1];

        let lanes = self.lanes(acc);
        let mut values: Vec<Reg> = (0..self.lane_count(acc)).map(|register| lanes.get(register)).collect();
        let begun = (k > STEPS).then(|| {
            let variables: Vec<Reg> = values.iter().map(|_| self.reg(Class::F32)).collect();
            for (variable, value) in variables.iter().zip(&values) {
                asm!(self, "mov.f32 {variable}, {value}");
            }
            let [left, right, step] = [0; 3].map(|_| self.reg(Class::B32));
            asm!(self, "mov.b32 {left}, {}", rows.address);
            asm!(self, "mov.b32 {right}, {}", columns.address);
            asm!(self, "mov.b32 {step}, 0");
            let again = self.asm.label();
            self.asm.define_label(&again);
            (variables, left, right, step, again)
        });
        let (left, right) = begun.as_ref().map_or((rows.address, columns.address), |(variables, left, right, ..)| {
            values.clone_from(variables);
            (*left, *right)
        });
        for first in (0..k.min(STEPS)).step_by(depth as usize) {
            let read = |cx: &mut Self, address: Reg, offset: u32, count: u32| {
                cx.load_group("ld.shared", &format!("[{address}+{offset}]"), Dtype::F32, None, &vec![None; count as usize])
            };
            let of_rows: Vec<Vec<Reg>> = rows.offsets.iter().map(|offset| read(self, left, offset + first * BYTES, depth)).collect();
            for step in 0..depth {
                let at = (first + step) * row_bytes;
                let row: Vec<Reg> = columns.offsets.iter().flat_map(|offset| read(self, right, offset + at, columns.width)).collect();
                for (register, value) in values.iter_mut().enumerate() {
                    let (x, y) = (of_rows[rows.of_sum[register]][step as usize], row[columns.of_sum[register]]);
                    let sum = self.reg(Class::F32);
                    asm!(self, "fma.rn.f32 {sum}, {x}, {y}, {value}");
                    *value = sum;
                }
            }
        }
        if let Some((variables, left, right, step, again)) = begun {
            for (variable, value) in variables.iter().zip(&values) {
                asm!(self, "mov.f32 {variable}, {value}");
            }
            values = variables;
            let is_left = self.reg(Class::Pred);
            asm!(self, "add.s32 {left}, {left}, {}", STEPS * BYTES);
            asm!(self, "add.s32 {right}, {right}, {}", STEPS * row_bytes);
            asm!(self, "add.s32 {step}, {step}, {STEPS}");
            asm!(self, "setp.lt.u32 {is_left}, {step}, {k}");
            asm!(self, "@{is_left} bra.uni {again}");
        }
        self.define(result, Lanes::Each(values));
    }

    /// Stores a tile whose neighbours along the last axis are in neighbouring registers.
    fn store_plain(&mut self, x: Value, layout: &Layout, stored: &Stored, start: u32) {
        let (free, thread) = (layout.free_bits(), self.thread());
        let owner = self.owner(free.lane | free.warp << 5, thread);
        let address = self.thread_offset(layout, &stored.strides);
        let lanes = self.lanes(x);
        let width = own_extent(layout, layout.rank() - 1).min(WIDE);
        for first in (0..layout.registers_per_thread()).step_by(width as usize).filter(|register| register & free.register == 0) {
            let group: Vec<Reg> = (first..first + width).map(|register| lanes.get(register as usize)).collect();
            let offset = start + stored.start + register_offset(layout, &stored.strides, first);
            self.store_group("st.shared", &format!("[{address}+{offset}]"), Dtype::F32, owner, &group);
        }
    }

    /// The reads of an operand for the elements of the sums. `read` elements are read at once, of which `used` belong to neighbouring sums.
    fn reads(&mut self, sums: &Layout, strides: &[u32], start: u32, (read, used): (u32, u32)) -> Reads {
        let address = self.thread_offset(sums, strides);
        let of_register: Vec<u32> = (0..sums.registers_per_thread()).map(|register| register_offset(sums, strides, register)).collect();
        let mut numbers: BTreeMap<u32, usize> = of_register.iter().map(|offset| (*offset, 0)).collect();
        numbers.values_mut().enumerate().for_each(|(number, at)| *at = number);
        let offsets = numbers.keys().step_by(used as usize).map(|offset| start + offset).collect();
        Reads { address, offsets, width: read, of_sum: of_register.iter().map(|offset| numbers[offset]).collect() }
    }

    /// The address of the element of a thread's first register.
    fn thread_offset(&mut self, layout: &Layout, strides: &[u32]) -> Reg {
        let mut sum = self.shared_address(None);
        for (axis, stride) in strides.iter().enumerate().filter(|(_, stride)| **stride > 0) {
            // The number of a lane has five bits.
            let values: Vec<u32> = [Level::Lane, Level::Warp]
                .iter()
                .flat_map(|level| (0..layout.bits(*level)).map(move |bit| layout.basis_along(*level, bit, axis)))
                .collect();
            if let Some(index) = self.xor_of_thread_bits(&values) {
                let next = self.reg(Class::B32);
                asm!(self, "mad.lo.s32 {next}, {index}, {stride}, {sum}");
                sum = next;
            }
        }
        sum
    }
}

/// The distance of a register's element from that of the first register.
fn register_offset(layout: &Layout, strides: &[u32], register: u32) -> u32 {
    layout.apply(register, 0, 0, 0).iter().zip(strides).map(|(index, stride)| index * stride).sum()
}
