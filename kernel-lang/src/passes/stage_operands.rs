//! Operands of matrix products go through shared memory: threads copy each element once, and warps read the fragments of a slice right in front of its products.
//!
//! ```text
//! ; before
//! ; num_warps 4
//! kernel @k(%x: ptr<bf16>, %y: ptr<bf16>, %i: tile<i64, [64, 64]>, %j: tile<i64, [64, 64]>, %acc: tile<f32, [64, 64]>) {
//!     %0 = load %x, %i {in_bounds = true, align = 16} : tile<bf16, [64, 64]>
//!     %1 = load %y, %j {in_bounds = true, align = 16} : tile<bf16, [64, 64]>
//!     %2 = dot %0, %1, %acc : tile<f32, [64, 64]>
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<bf16>, %y: ptr<bf16>, %i: tile<i64, [64, 64]>, %j: tile<i64, [64, 64]>, %acc: tile<f32, [64, 64]>) {
//!     %0 = async_buffer {slots = 1, common = true} : tile<bf16, [64, 64]>
//!     %1 = const {value = 0} : i32
//!     %2 = const {value = true} : bool
//!     async_copy %0, %1, %2, %x, %i {align = 16}
//!     async_commit_group
//!     %3 = async_buffer {slots = 1, common = true} : tile<bf16, [64, 64]>
//!     %4 = const {value = 0} : i32
//!     %5 = const {value = true} : bool
//!     async_copy %3, %4, %5, %y, %j {align = 16}
//!     async_commit_group
//!     async_wait
//!     %6 = local_load %0, %1 {first = [0, 0]} : tile<bf16, [64, 32]>
//!     %7 = local_load %3, %4 {first = [0, 0]} : tile<bf16, [32, 64]>
//!     %8 = dot %6, %7, %acc : tile<f32, [64, 64]>
//!     %9 = local_load %0, %1 {first = [0, 32]} : tile<bf16, [64, 32]>
//!     %10 = local_load %3, %4 {first = [32, 0]} : tile<bf16, [32, 64]>
//!     %11 = dot %9, %10, %8 : tile<f32, [64, 64]>
//!     return
//! }
//! ```
//!
//! A fragment has elements that other warps need, too, and lanes whose elements do not lie beside each other. If each warp loaded its fragments from the tensor, it would load
//! what others load as well, and a thread would hold fragments of the whole tile at a time.
//!
//! - **Slots.** Loops copy operands ahead into a ring of slots ([`prefetch_loads`](super::prefetch_loads)). Other loads that only products use get one slot: the copy is where
//!   the load was, and the wait for it in front of the product. If a branch chooses between two loads, both arms copy to the same slot.
//! - **Slices.** A product whose operands are both in slots becomes one for each 64 bytes of the rows of its operands. Products that share a slot alternate, so that its
//!   fragments are read once. Both operands of a product have their own reads.
//!
//! The pass relies on these: nothing but products uses the loads, the kernel does not write the tensors, and a program is one CTA. The verifier tests that a barrier separates the
//! copies of a slot from the reads (invariant 13).

mod rings;
mod slices;
mod slots;

use crate::diagnostic::Diagnostics;
use crate::ir::product::multiplier;
use crate::ir::rewrite::{Changed, use_counts};
use crate::ir::{Builder, Function, Handle, Inst, Op, SideTable, Stored, Value};
use crate::layout::Multiplier;
use crate::schedule::Schedule;
use crate::target::Asked;

use super::prefetch_loads::is_copied;
pub(super) use rings::slots_of_loop;

/// The shared memory that is left to the exchanges of other ops.
pub(super) const LEFT_BYTES: u32 = 1 << 10;

/// Runs the pass.
///
/// # Errors
/// None.
pub fn run(func: &mut Function, target: &Asked, schedule: Schedule) -> Result<Changed, Diagnostics> {
    let is_staged = !func.reports && schedule.num_warps > 1 && slots::stage(func, target, schedule);
    Ok(slices::slice(func) | is_staged)
}

/// The loads that only products by matrix instructions use, of tensors that the kernel does not write.
pub(super) fn multiplied(func: &Function, schedule: Schedule) -> SideTable<Inst, bool> {
    let mut multiplied = SideTable::new();
    let insts = func.all_insts();
    if schedule.num_ctas > 1 || !insts.iter().any(|inst| is_product(func, &func.inst(*inst).op)) {
        return multiplied;
    }
    let stored = Stored::by(func, &insts);
    let uses = Uses::of(func, &insts);
    for inst in insts {
        if is_stageable(func, &stored, inst) {
            multiplied[inst] = uses.are_products(func.result(inst));
        }
    }
    multiplied
}

/// Is it a product by matrix instructions?
fn is_product(func: &Function, op: &Op) -> bool {
    matches!(op, Op::Dot { a, precision, .. } if matches!(multiplier(func.ty(*a).dtype(), *precision), Multiplier::Mma { .. }))
}

/// Can the elements of the load be copied to shared memory?
fn is_stageable(func: &Function, stored: &Stored, inst: Inst) -> bool {
    match func.inst(inst).op {
        Op::Load { base, other, cache, volatile: false, partial: false, shifted: false, .. } => {
            func.ty(func.result(inst)).is_tile()
                && is_copied(cache)
                && other.is_none_or(|other| func.has_zero_bits(other))
                && !stored.may_alias(func, base)
        }
        _ => false,
    }
}

/// What uses each value.
struct Uses {
    /// Is it an operand of a product, or permuted for one?
    of_products: SideTable<Value, bool>,
    otherwise: SideTable<Value, bool>,
}

impl Uses {
    fn of(func: &Function, insts: &[Inst]) -> Uses {
        let mut uses = Uses { of_products: SideTable::new(), otherwise: SideTable::new() };
        // Users come before the values that they use. What a loop carries has other uses.
        for inst in insts.iter().rev() {
            match &func.inst(*inst).op {
                op @ Op::Dot { a, b, acc, .. } if is_product(func, op) => {
                    [*a, *b].into_iter().for_each(|operand| uses.of_products[operand] = true);
                    uses.otherwise[*acc] = true;
                }
                Op::Permute { x, .. } if uses.are_products(func.result(*inst)) => uses.of_products[*x] = true,
                op => op.for_each_operand(&mut |operand| uses.otherwise[operand] = true),
            }
        }
        uses
    }

    fn are_products(&self, value: Value) -> bool {
        self.of_products[value] && !self.otherwise[value]
    }
}

/// An operand of a product: a value, and the orders of the `permute`s behind it, the first one first.
#[derive(Clone)]
struct Operand {
    value: Value,
    orders: Vec<Vec<u32>>,
}

impl Operand {
    fn of(func: &Function, mut value: Value) -> Operand {
        let mut orders = Vec::new();
        while let Some(Op::Permute { x, order }) = func.def_op(value) {
            orders.insert(0, order.clone());
            value = *x;
        }
        Operand { value, orders }
    }

    /// The axis of the value that becomes the axis `axis` of the operand.
    fn axis(&self, axis: usize) -> usize {
        self.orders.iter().rev().fold(axis, |axis, order| order[axis] as usize)
    }

    /// Appends the `permute`s of another value.
    fn permuted(&self, b: &mut Builder<'_>, value: Value) -> Value {
        self.orders.iter().fold(value, |value, order| b.permute(value, order.clone()))
    }
}

/// The operands of a product.
fn operands(func: &Function, product: Inst) -> Option<[Operand; 2]> {
    match &func.inst(product).op {
        op @ Op::Dot { a, b, .. } if is_product(func, op) => Some([Operand::of(func, *a), Operand::of(func, *b)]),
        _ => None,
    }
}

/// Removes the `permute`s and the reads of slots that nothing uses any more.
fn remove_unused(func: &mut Function) {
    let mut uses = use_counts(func);
    for region in func.regions_under(func.body) {
        let mut insts = func.region(region).insts.clone();
        insts.reverse();
        insts.retain(|inst| {
            let data = func.inst(*inst);
            let is_unused =
                matches!(data.op, Op::Permute { .. } | Op::LocalLoad { first: Some(_), .. }) && uses[data.results[0].index()] == 0;
            if is_unused {
                data.op.for_each_operand(&mut |operand| uses[operand.index()] -= 1);
            }
            !is_unused
        });
        insts.reverse();
        *func.insts_mut(region) = insts;
    }
}
