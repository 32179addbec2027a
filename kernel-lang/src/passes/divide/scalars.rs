//! Divisions of scalars by divisors that the host knows: it computes the reciprocals.
//!
//! [`super::run`] leaves these divisions, because the host also knows the range of a quotient, as part of a condition that it computes for all programs
//! of a launch. It would not recognise a product with a reciprocal. So [`crate::passes::compute_at_launch`] calls this module when it has moved the
//! conditions, and before it moves the scalars.

use rustc_hash::FxHashSet;

use crate::ir::rewrite::{Changed, expand_each};
use crate::ir::{BinaryOp, Builder, Function, Inst, Op, Region, Value};
use crate::launch_value::sizes::Sizes;
use crate::launch_value::{executed, known_scalars};

use super::Division;

/// The operands of a division of scalars of up to 32 bits by a divisor that is no constant.
fn division(func: &Function, inst: Inst) -> Option<(Value, Value)> {
    let Op::Binary { op: BinaryOp::Div, lhs: n, rhs: d } = func.inst(inst).op else { return None };
    let (ty, dtype) = (func.ty(n), func.ty(n).dtype());
    (ty.is_scalar() && dtype.is_int() && dtype.bits() <= 32 && func.splat(d).is_none()).then_some((n, d))
}

/// Divides by reciprocals, unless the host computes the whole quotient.
pub(crate) fn run(func: &mut Function) -> Changed {
    let regions = executed(func);
    // Few kernels divide 32-bit scalars.
    if !regions.iter().flat_map(|region| &func.region(*region).insts).any(|inst| division(func, *inst).is_some()) {
        return false;
    }
    let (sizes, known) = (Sizes::of(func), known_scalars(func, &regions, &Op::is_uniform));
    let regions: FxHashSet<Region> = regions.into_iter().collect();
    expand_each(func, |func, region, inst| {
        let is_known = |value| func.param_index(value).is_some() || known[value];
        let (n, d) = division(func, inst).filter(|(n, d)| is_known(*d) && !is_known(*n) && regions.contains(&region))?;
        let are_natural = [n, d].map(|value| sizes.is_natural(func, value));
        let division = Division { op: BinaryOp::Div, are_natural, is_small: false };
        let loc = func.inst(inst).loc;
        Some(division.by(&mut Builder::new(func, region, loc), n, d))
    })
}
