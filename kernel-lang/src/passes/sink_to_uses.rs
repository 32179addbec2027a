//! Sinking to uses: moves a cast to a wider type, or a comparison of floats with a uniform value, in front of the first op that uses it, so
//! that the tile occupies few registers until then.
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
//! occupied twice as many registers during the sums, and fewer programs ran at once. The driver's compiler does not move the casts.
//!
//! A thread has seven predicate registers. If code with branches lies between a comparison and its use, each further predicate is kept in a
//! register as large as the float, and takes two instructions. Masks are comparisons of integers; the backend recomputes them at each use.
//!
//! An op that waits and that no op uses is removed.

use crate::ir::rewrite::Changed;
use crate::ir::{Function, Inst, Op, SideTable, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    for region in func.regions_under(func.body) {
        let before = &func.region(region).insts;
        let mut sinker = Sinker { func, waiting: SideTable::new(), out: Vec::with_capacity(before.len()) };
        for inst in before {
            match sinker.waiting_result(*inst) {
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
    /// The op that computes a value, until an op uses that value.
    waiting: SideTable<Value, Option<Inst>>,
    out: Vec<Inst>,
}

impl Sinker<'_> {
    /// The result of an op that waits for its first use.
    fn waiting_result(&self, inst: Inst) -> Option<Value> {
        let data = self.func.inst(inst);
        let is_uniform = |value: Value| self.func.splat(value).is_some() || self.func.ty(self.func.unmoved(value)).is_scalar();
        let waits = match data.op {
            Op::Cast { x } => self.func.ty(x).dtype().bytes() < self.func.ty(self.func.result(inst)).dtype().bytes(),
            Op::Compare { lhs, rhs, .. } => self.func.ty(lhs).dtype().is_float() && (is_uniform(lhs) || is_uniform(rhs)),
            _ => false,
        };
        (waits && self.func.ty(data.results[0]).is_tile()).then(|| data.results[0])
    }

    /// Appends an op, and in front of it the waiting ops that it or an op in its regions uses.
    fn push(&mut self, inst: Inst) {
        let func = self.func;
        let op = &func.inst(inst).op;
        op.for_each_operand(&mut |value| self.place(value));
        op.for_each_region(&mut |region| {
            func.for_each_inst(region, &mut |inner| func.inst(inner).op.for_each_operand(&mut |value| self.place(value)));
        });
        self.out.push(inst);
    }

    /// Appends the op that computes a value if it waits.
    fn place(&mut self, value: Value) {
        if let Some(op) = self.waiting[value].take() {
            self.push(op);
        }
    }
}
