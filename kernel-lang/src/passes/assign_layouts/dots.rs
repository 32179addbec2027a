//! Matrix products: the operands and the result of a `dot` have the layouts of the matrix instruction.
//!
//! ```text
//! %c = convert %a
//! %d = convert %b
//! %s = dot %c, %d, %acc        : %c, %d, %acc and %s have the layouts of fragments
//! ```
//!
//! A convert separates each operand from the ops that compute it. These take the layout of the fragment if that costs less than the convert: a load does, where a
//! thread's run of neighbours is as wide as its access. Then no element goes through shared memory.

use rustc_hash::FxHashMap;

use crate::dtype::Dtype;
use crate::ir::{Function, Op, Value, fragments, warpgroup_accumulator, warpgroup_operand};
use crate::layout::{Fragments, Layout};
use crate::schedule::Schedule;
use crate::target::{Asked, Target};

use super::components::Components;

/// Inserts the converts, before layouts are chosen. Where the target does not multiply 8-bit floats, their products are those of `f16`, which has all their values.
pub(super) fn isolate(func: &mut Function, target: &Asked) {
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            let (op, loc) = (func.inst(inst).op.clone(), func.inst(inst).loc);
            if let Op::Dot { a, b, acc, precision } = op {
                let [a, b] = [a, b].map(|x| {
                    let ty = func.ty(x).clone();
                    let convert = func.make_inst(Op::Convert { x }, [ty.clone()], loc);
                    out.push(convert);
                    let x = func.result(convert);
                    if !ty.dtype().is_float8() || target.ask(Target::has_float8_products) {
                        return x;
                    }
                    let cast = func.make_inst(Op::Cast { x }, [ty.with_elem(Dtype::F16)], loc);
                    out.push(cast);
                    func.result(cast)
                });
                func.inst_mut(inst).op = Op::Dot { a, b, acc, precision };
            } else if matches!(op, Op::WarpgroupDot { .. } | Op::StoreBlock { .. }) {
                // The accumulators are those of the result.
                let is_isolated = |value: Value| match op {
                    Op::WarpgroupDot { a, b, .. } => [a, b].contains(&value) && func.ty(value).is_tile(),
                    _ => func.ty(value).is_tile(),
                };
                let mut isolated = Vec::new();
                op.for_each_operand(&mut |value| isolated.extend(is_isolated(value).then_some(value)));
                for x in isolated {
                    let ty = func.ty(x).clone();
                    let convert = func.make_inst(Op::Convert { x }, [ty], loc);
                    out.push(convert);
                    let converted = func.result(convert);
                    func.inst_mut(inst).op.map_operands(&mut |value| if value == x { converted } else { value });
                }
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
}

/// The layouts that products leave no choice about, by component.
pub(super) fn layouts(func: &Function, components: &mut Components, schedule: Schedule) -> FxHashMap<usize, Layout> {
    let mut required = FxHashMap::default();
    for inst in func.all_insts() {
        let op = &func.inst(inst).op;
        let of_warpgroups = match op {
            Op::WarpgroupDot { a, b, acc, swapped, .. } => {
                for operand in [a, b].into_iter().filter(|operand| func.ty(**operand).is_tile()) {
                    required
                        .extend(warpgroup_operand(func, *operand, *swapped, schedule).map(|layout| (components.find(*operand), layout)));
                }
                Some((*acc, *swapped))
            }
            Op::StoreBlock { value, swapped, .. } => Some((*value, *swapped)),
            _ => None,
        };
        if let Some((tile, swapped)) = of_warpgroups
            && let Some(layout) = warpgroup_accumulator(func, tile, swapped, schedule)
        {
            required.insert(components.find(tile), layout);
        }
        if let Op::Dot { a, b, acc, .. } = op
            && let Some(Fragments { a: left, b: right, accumulator }) = fragments(func, op, schedule)
        {
            for (tile, layout) in [(a, left), (b, right), (acc, accumulator)] {
                required.insert(components.find(*tile), layout);
            }
        }
    }
    required
}
