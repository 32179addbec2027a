//! Exchanges in parts: a loop over parts, for exchanges that need more bytes than the available shared memory.
//!
//! The memory of an exchange is divided into parts of equal size. In each iteration the threads write the elements of the part, wait at a
//! barrier, read the elements of the part that they need, and wait again. Registers have no dynamic index, so the loop body contains every
//! access once, under a predicate: whether its offset lies in the part. The code does not grow with the number of parts.
//!
//! ```text
//! first = 0
//! again:
//!     @(offset - first < part) st.shared [address - first], x      for every element
//!     bar.sync
//!     @(offset - first < part) ld.shared y, [address - first]      for every element
//!     bar.sync
//!     first += part; if first < all: again
//! ```

use crate::dtype::Dtype;

use crate::backend::ptx::Emitter;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// The loop over the parts of an exchange, whose body is being emitted.
pub(crate) struct Parts {
    /// The offset of the first byte of this part in the memory of the whole exchange.
    first: Reg,
    bytes: u32,
    again: String,
}

impl Emitter<'_> {
    /// Initialises the variables for the elements that a thread reads, each in one of the iterations. Call this before
    /// [`Emitter::begin_parts`]. There are no variables if there is one part only.
    pub(crate) fn results_of_parts(&mut self, are_several: bool, dtype: Dtype, count: usize) -> Vec<Reg> {
        let class = Class::of(dtype);
        let count = if are_several { count } else { 0 };
        let variables: Vec<Reg> = (0..count).map(|_| self.reg(class)).collect();
        for variable in &variables {
            match class {
                Class::Pred => asm!(self, "setp.ne.s32 {variable}, 0, 0"),
                Class::F32 => asm!(self, "mov.f32 {variable}, 0f00000000"),
                Class::F64 => asm!(self, "mov.f64 {variable}, 0d0000000000000000"),
                _ => asm!(self, "mov.{} {variable}, 0", class.suffix()),
            }
        }
        variables
    }

    /// Begins the loop over parts of `bytes` bytes, if there are several parts.
    pub(crate) fn begin_parts(&mut self, are_several: bool, bytes: u32) -> Option<Parts> {
        are_several.then(|| {
            let (first, again) = (self.reg(Class::B32), self.asm.label());
            asm!(self, "mov.b32 {first}, 0");
            self.asm.define_label(&again);
            Parts { first, bytes, again }
        })
    }

    /// The access to the offset `offset + constant` of the exchange: the address within the part, and the predicate whether the offset lies
    /// in the part.
    pub(crate) fn in_part(&mut self, part: Option<&Parts>, address: Reg, offset: Reg, constant: i64) -> (Reg, Option<Reg>) {
        let Some(part) = part else { return (address, None) };
        let [moved, distance] = [0; 2].map(|_| self.reg(Class::B32));
        let is_inside = self.reg(Class::Pred);
        asm!(self, "sub.s32 {moved}, {address}, {}", part.first);
        asm!(self, "sub.s32 {distance}, {offset}, {}", part.first);
        let mut part_offset = distance;
        if constant != 0 {
            part_offset = self.reg(Class::B32);
            asm!(self, "add.s32 {part_offset}, {distance}, {constant}");
        }
        asm!(self, "setp.lt.u32 {is_inside}, {part_offset}, {}", part.bytes);
        (moved, Some(is_inside))
    }

    /// Ends the loop over parts of `all` bytes in total. The variables keep the values that were read. Returns the values that the exchange
    /// has read.
    pub(crate) fn end_parts(&mut self, part: Option<Parts>, all: u32, variables: Vec<Reg>, read: Vec<Reg>) -> Vec<Reg> {
        let Some(Parts { first, bytes, again }) = part else { return read };
        for (variable, read) in variables.iter().zip(read) {
            asm!(self, "mov.{} {variable}, {read}", variable.class.suffix());
        }
        self.barrier();
        let is_left = self.reg(Class::Pred);
        asm!(self, "add.s32 {first}, {first}, {bytes}");
        asm!(self, "setp.lt.u32 {is_left}, {first}, {all}");
        asm!(self, "@{is_left} bra.uni {again}");
        variables
    }
}
