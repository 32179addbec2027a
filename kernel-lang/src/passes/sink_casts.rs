//! Cast sinking: moves a cast to a wider type in front of the first op that uses it, so that the tile occupies few registers until then.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<f32>, %w: tile<f16, [64]>, %v: tile<f32, [64]>) {
//!     %0 = cast %w : tile<f32, [64]>
//!     %1 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     store %y, %1, %v
//!     store %y, %1, %0
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f32>, %w: tile<f16, [64]>, %v: tile<f32, [64]>) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     store %y, %0, %v
//!     %1 = cast %w : tile<f32, [64]>
//!     store %y, %0, %1
//!     return
//! }
//! ```
//!
//! A norm loads its weights together with the row and uses them behind the sums of the row. Cast where they are loaded, weights of 16 bits
//! occupied twice as many registers during the sums, and fewer programs ran at once. The driver's compiler does not move the casts. A cast that
//! no op uses is removed.

use crate::ir::rewrite::Changed;
use crate::ir::{Function, Inst, Op, SideTable, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    for region in func.regions_under(func.body) {
        let before = &func.region(region).insts;
        let mut sinker = Sinker { func, waiting: SideTable::new(), out: Vec::with_capacity(before.len()) };
        for inst in before {
            match sinker.widened(*inst) {
                Some(result) => sinker.waiting[result] = Some(*inst),
                None => sinker.push(*inst),
            }
        }
        let after = sinker.out;
        changed |= after != *before;
        *func.insts_mut(region) = after;
    }
    changed
}

struct Sinker<'f> {
    func: &'f Function,
    /// The cast that computes a value, until an op uses that value.
    waiting: SideTable<Value, Option<Inst>>,
    out: Vec<Inst>,
}

impl Sinker<'_> {
    /// The result of a cast of a tile to a wider type.
    fn widened(&self, inst: Inst) -> Option<Value> {
        let Op::Cast { x } = self.func.inst(inst).op else { return None };
        let result = self.func.result(inst);
        let (from, to) = (self.func.ty(x), self.func.ty(result));
        (to.is_tile() && from.dtype().bytes() < to.dtype().bytes()).then_some(result)
    }

    /// Appends an op, and in front of it the waiting casts that it or an op in its regions uses.
    fn push(&mut self, inst: Inst) {
        let func = self.func;
        let op = &func.inst(inst).op;
        op.for_each_operand(&mut |value| self.place(value));
        op.for_each_region(&mut |region| {
            func.for_each_inst(region, &mut |inner| func.inst(inner).op.for_each_operand(&mut |value| self.place(value)));
        });
        self.out.push(inst);
    }

    /// Appends the cast that computes a value if it waits.
    fn place(&mut self, value: Value) {
        if let Some(cast) = self.waiting[value].take() {
            self.push(cast);
        }
    }
}
