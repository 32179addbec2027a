//! Divisions of scalars by divisors that the host knows: it computes the reciprocals.
//!
//! [`super::run`] leaves these divisions, because the host also knows the range of a quotient, as part of a condition that it computes for all programs
//! of a launch. It would not recognise a product with a reciprocal. So [`crate::passes::compute_at_launch`] calls this module when it has moved the
//! conditions, and before it moves the scalars.

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{BinaryOp, Builder, Function, Inst, Op, Type, Value};
use crate::launch_value::{executed, is_uniform, known_scalars};

use super::reciprocal::Reciprocal;

/// The operands of a division of `u32` scalars by a divisor that is no constant.
fn division(func: &Function, inst: Inst) -> Option<(Value, Value)> {
    let data = func.inst(inst);
    match data.op {
        Op::Binary { op: BinaryOp::Div, lhs, rhs } if *func.ty(data.results[0]) == Type::scalar(Dtype::U32) => {
            func.splat(rhs).is_none().then_some((lhs, rhs))
        }
        _ => None,
    }
}

/// Divides by reciprocals, unless the host computes the whole quotient.
pub(crate) fn run(func: &mut Function) -> Changed {
    let executed = executed(func);
    // Few kernels divide `u32`.
    if !executed.iter().flat_map(|region| &func.region(*region).insts).any(|inst| division(func, *inst).is_some()) {
        return false;
    }
    let known = known_scalars(func, &executed, &is_uniform);
    let is_known = |func: &Function, value: Value| known[value] || func.param_index(value).is_some();
    let mut replaced = Substitution::new();
    for region in executed {
        for inst in std::mem::take(func.insts_mut(region)) {
            let Some((n, d)) = division(func, inst).filter(|(n, d)| is_known(func, *d) && !is_known(func, *n)) else {
                func.insts_mut(region).push(inst);
                continue;
            };
            let loc = func.inst(inst).loc;
            let b = &mut Builder::new(func, region, loc);
            let quotient = Reciprocal::of(b, d).divided(b, BinaryOp::Div, n);
            replaced.insert(b.func.result(inst), quotient);
        }
    }
    substitute(func, func.body, &replaced)
}
