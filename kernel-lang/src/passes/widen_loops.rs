//! Loop widening: a loop with an index of fewer bits counts in 64 bits if its index is used in memory indices.
//!
//! ```text
//! ; before
//! ; then dce
//! kernel @k(%y: ptr_mut<i32>, %n: i32, %one: i32) {
//!     %0 = const {value = 0} : i32
//!     for %0, %n, %one (%i: i32) {
//!         %1 = cast %i : i64
//!         store %y, %1, %i
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i32>, %n: i32, %one: i32) {
//!     %0 = const {value = 0} : i64
//!     %1 = cast %n : i64
//!     %2 = cast %one : i64
//!     for %0, %1, %2 (%3: i64) {
//!         %4 = cast %3 : i32
//!         store %y, %3, %4
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! Other passes need a memory index to be a sum of 64-bit scalars. Every value of the loop index is the same number in both types. A loop
//! of `u64` stays, because `i64` does not hold all its values.

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{Builder, ConstExpr, Function, Inst, Op, Region, Type, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    // Inner loops first: their bounds may be the index of an outer loop.
    for region in func.regions_under(func.body).into_iter().rev() {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            if let Op::For { lower, body, .. } = func.inst(inst).op
                && func.ty(lower).dtype().bits() != 64
            {
                let widened = widened(func, body, func.region(body).params[0]);
                if !widened.is_empty() {
                    widen(func, inst, &widened, &mut out);
                    changed = true;
                }
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    changed
}

/// The casts of the loop index to `i64` in the body.
fn widened(func: &Function, body: Region, index: Value) -> Vec<Value> {
    let mut found = Vec::new();
    func.for_each_inst(body, &mut |inst| {
        let data = func.inst(inst);
        if let Op::Cast { x } = data.op
            && x == index
            && func.ty(data.results[0]) == &Type::scalar(Dtype::I64)
        {
            found.push(data.results[0]);
        }
    });
    found
}

/// Makes a loop count in 64 bits. The ops that compute its bounds are appended to `out`.
fn widen(func: &mut Function, inst: Inst, widened: &[Value], out: &mut Vec<Inst>) {
    let data = func.inst(inst).clone();
    let Op::For { lower, upper, step, body, .. } = data.op else { return };
    let (index, narrow) = (func.region(body).params[0], func.ty(lower).clone());
    // In front of the loop: the bounds.
    let scratch = func.add_region();
    let b = &mut Builder::new(func, scratch, data.loc);
    let bounds = [lower, upper, step].map(|bound| match b.func.def_op(bound).cloned() {
        Some(Op::Const { value: ConstExpr::Int(value) }) => b.index(value),
        _ => b.cast(bound, Dtype::I64),
    });
    out.append(func.insts_mut(scratch));
    if let Op::For { lower, upper, step, .. } = &mut func.inst_mut(inst).op {
        [*lower, *upper, *step] = bounds;
    }
    // In the body: the index in its original type, for the ops that use it so.
    func.set_ty(index, Type::scalar(Dtype::I64));
    let cast = func.make_inst(Op::Cast { x: index }, [narrow], data.loc);
    let mut with = Substitution::new();
    with.insert(index, func.result(cast));
    substitute(func, body, &with);
    let mut with = Substitution::new();
    widened.iter().for_each(|value| with.insert(*value, index));
    substitute(func, body, &with);
    func.insts_mut(body).insert(0, cast);
}
