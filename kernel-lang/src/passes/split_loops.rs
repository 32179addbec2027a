//! Loop splitting: an unmasked main loop for the iterations whose tiles are full, then a masked remainder loop, such as for the last tile
//! of a row.
//!
//! ```text
//! ; before
//! ; then canonicalize, cse, dce
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64, %acc: tile<f32, [64]>) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 64} : i64
//!     %2 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %3 = broadcast %n : tile<i64, [64]>
//!     %4 = for %0, %n, %1, %acc (%i: i64, %sum: tile<f32, [64]>) {
//!         %5 = broadcast %i : tile<i64, [64]>
//!         %6 = add %5, %2 : tile<i64, [64]>
//!         %7 = lt %6, %3 : tile<bool, [64]>
//!         %8 = load %x, %6 {mask = %7} : tile<f32, [64]>
//!         %9 = add %sum, %8 : tile<f32, [64]>
//!         yield %9
//!     } : tile<f32, [64]>
//!     store %y, %2, %4
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64, %acc: tile<f32, [64]>) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 64} : i64
//!     %2 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %3 = length %x : i64
//!     %4 = sub %3, %1 : i64
//!     %5 = ge %4, %0 : bool
//!     %6 = gt %n, %0 : bool
//!     %7 = const {value = 63} : i64
//!     %8 = gt %n, %7 : bool
//!     %9 = address %x : i64
//!     %10 = const {value = 15} : i64
//!     %11 = and %9, %10 : i64
//!     %12 = eq %11, %0 : bool
//!     %13 = and %5, %6 : bool
//!     %14 = and %13, %8 : bool
//!     %15 = and %14, %12 : bool
//!     %16 = const {value = 1} : i64
//!     %17 = add %4, %16 : i64
//!     %18 = sub %n, %7 : i64
//!     %19 = const {value = 9223372036854775743} : i64
//!     %20 = le %n, %19 : bool
//!     %21 = and %20, %6 : bool
//!     %22 = max %n, %0 : i64
//!     %23 = select %21, %22, %0 : i64
//!     %24 = min %17, %18 : i64
//!     %25 = min %23, %24 : i64
//!     %26 = select %15, %25, %0 : i64
//!     %27 = max %26, %0 : i64
//!     %28 = sub %27, %16 : i64
//!     %29 = const {value = 6} : i64
//!     %30 = shr %28, %29 : i64
//!     %31 = add %30, %16 : i64
//!     %32 = mul %31, %1 : i64
//!     %39 = for %0, %32, %1, %acc (%33: i64, %34: tile<f32, [64]>) {
//!         %35 = broadcast %33 : tile<i64, [64]>
//!         %36 = add %35, %2 : tile<i64, [64]>
//!         %37 = load %x, %36 {in_bounds = true, align = 16} : tile<f32, [64]>
//!         %38 = add %34, %37 : tile<f32, [64]>
//!         yield %38
//!     } : tile<f32, [64]>
//!     %40 = gt %32, %0 : bool
//!     %41 = le %23, %1 : bool
//!     %42 = and %12, %41 : bool
//!     %43 = min %n, %1 : i64
//!     %44 = sub %3, %43 : i64
//!     %45 = ge %44, %0 : bool
//!     %46 = const {value = 4611686018427387904} : i64
//!     %47 = const {value = 4611686018427387904} : u64
//!     %48 = bitcast %n : u64
//!     %49 = lt %48, %47 : bool
//!     %50 = const {value = 2147483648} : i64
//!     %51 = add %n, %50 : i64
//!     %52 = bitcast %51 : u64
//!     %53 = const {value = 4294967296} : u64
//!     %54 = lt %52, %53 : bool
//!     %55 = and %45, %49 : bool
//!     %56 = and %55, %54 : bool
//!     %57 = sub %n, %16 : i64
//!     %58 = const {value = -64} : i64
//!     %59 = and %57, %58 : i64
//!     %60 = lt %n, %46 : bool
//!     %61 = ge %59, %0 : bool
//!     %62 = sub %n, %59 : i64
//!     %63 = min %62, %1 : i64
//!     %64 = sub %3, %63 : i64
//!     %65 = le %59, %64 : bool
//!     %66 = bitcast %59 : u64
//!     %67 = lt %66, %47 : bool
//!     %68 = add %62, %50 : i64
//!     %69 = bitcast %68 : u64
//!     %70 = lt %69, %53 : bool
//!     %71 = and %61, %65 : bool
//!     %72 = and %71, %67 : bool
//!     %73 = and %72, %49 : bool
//!     %74 = and %73, %70 : bool
//!     %75 = and %60, %74 : bool
//!     %76 = and %56, %75 : bool
//!     %77 = not %76 : bool
//!     %78 = or %42, %77 : bool
//!     %79 = or %40, %78 : bool
//!     %102 = if %79 () {
//!         %89 = for %32, %n, %1, %39 {num_stages = 1, remainder = true} (%80: i64, %81: tile<f32, [64]>) {
//!             %82 = broadcast %80 : tile<i64, [64]>
//!             %83 = add %82, %2 : tile<i64, [64]>
//!             %84 = sub %22, %80 : i64
//!             %85 = broadcast %84 : tile<i64, [64]>
//!             %86 = lt %2, %85 : tile<bool, [64]>
//!             %87 = load %x, %83 {mask = %86} : tile<f32, [64]>
//!             %88 = add %81, %87 : tile<f32, [64]>
//!             yield %88
//!         } : tile<f32, [64]>
//!         yield %89
//!     } () {
//!         %101 = for %0, %n, %1, %acc {num_stages = 1, guarded = true} (%90: i64, %91: tile<f32, [64]>) {
//!             %92 = sub %n, %90 : i64
//!             %93 = cast %92 : i32
//!             %94 = cast %93 : i64
//!             %95 = broadcast %94 : tile<i64, [64]>
//!             %96 = lt %2, %95 : tile<bool, [64]>
//!             %97 = broadcast %90 : tile<i64, [64]>
//!             %98 = add %97, %2 : tile<i64, [64]>
//!             %99 = load %x, %98 {mask = %96, in_bounds = true} : tile<f32, [64]>
//!             %100 = add %91, %99 : tile<f32, [64]>
//!             yield %100
//!         } : tile<f32, [64]>
//!         yield %101
//!     } : tile<f32, [64]>
//!     store %y, %2, %102
//!     return
//! }
//! ```
//!
//! The main loop has no masks, and its accesses are as wide as possible. The remainder loop continues at the index where the main loop
//! stops, with the original body. [`super::split_full_tiles`] and [`super::guard_accesses`] handle its masks.
//!
//! Every condition for a full tile is a sum that the loop index adds to, or that does not depend on it. So the pass tests the conditions of
//! the first iteration once, in front of the loops. The slack of each condition limits how far the index may move; the smallest limit is
//! where the main loop stops. If a condition has another form, the loop stays whole, and each iteration tests for itself.
//!
//! If the step or a distance of rows is an argument, the limits are quotients, of 64 bits. Where a program takes every so many rows of a matrix, all of its
//! iterations are full. So the pass tests the last iteration, too. The host decides that test for most programs ([`super::compute_at_launch`]), and
//! only programs for which it fails divide.
//!
//! If the loop ends at a number that was loaded, such as the length of a sequence, its last iteration is hardly ever full. The main loop then keeps the mask that
//! ends there, if accesses are as wide with it, and runs all iterations or none: a test shows whether the last elements in front of the end are in the tensor.
//!
//! If rows are not aligned, or a block of columns ends behind the last column, the main loop runs no iteration. So a loop that carries tiles has a third
//! version, the guarded loop, which runs all iterations then (`guarded`). Reductions of these tiles move into the branch of both versions (`reductions`).
//!
//! The remainder loop masks by position: `start + columns < n` becomes `columns < n - start`, which needs no 64-bit arithmetic per element.
//! It also shows that the last tile ends a row, so that accesses are wide if `n` is a whole number of wide accesses.

mod guarded;
mod moving_ends;
mod positions;
mod slacks;

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::bits::Bits;
use crate::analysis::bounds::{self, Bound, LONGEST_STEP};
use crate::analysis::loops::{self, Loop};
use crate::analysis::masks::Comparison;
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, copy_insts, split_for, substitute};
use crate::ir::{Access, BinaryOp, Builder, CompareOp, Function, Inst, Op, Region, Type, Value};

use super::reductions::{Versions, sink_into_versions};
use super::split_full_tiles::{Plan, Sought, Test, WIDEST, Width, condition, is_inside, is_loaded, is_plain, is_shifted, make_full, plan};
use guarded::{Guarded, guarded_run};
use positions::mask_by_position;
use slacks::{full_span, slacks};

/// Longer bodies are not duplicated.
const MAX_OPS: usize = 1000;

/// A sum of two numbers below this does not wrap.
const MOST: i64 = 1 << 62;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let (mut facts, mut bits) = (AffineFacts::through_products(), Bits::default());
    let mut changed = false;
    for region in func.frequent_regions() {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            // A remainder loop needs its masks.
            let around = Loop::of(func, inst)
                .filter(|_| !matches!(func.inst(inst).op, Op::For { remainder: true, .. } | Op::For { guarded: true, .. }));
            if let Some((plan, around)) = around.and_then(|around| Some((full_iterations(func, &around, &mut facts)?, around))) {
                split(func, &around, plan, (&mut facts, &mut bits), &mut out);
                changed = true;
            }
            out.push(inst);
        }
        *func.insts_mut(region) = out;
    }
    if changed {
        let branches = func
            .all_insts()
            .into_iter()
            .filter_map(|branch| Some(Versions { branch, regions: guarded::versions(func, branch)? }))
            .collect();
        sink_into_versions(func, branches);
    }
    changed
}

/// The conditions for a full iteration, if the loop index only adds to them.
fn full_iterations(func: &Function, around: &Loop, facts: &mut AffineFacts) -> Option<Plan> {
    let body = &func.region(around.body).insts;
    let (_, ops) = body.split_last()?;
    if ops.len() > MAX_OPS || !ops.iter().all(|inst| is_plain(&func.inst(*inst).op)) {
        return None;
    }
    let index = around.index(func);
    let inside = loops::defined_in(func, &[around.body]);
    let usable = |value: Value| value == index || !inside[value];
    let mut full = plan(func, ops, facts, &usable, Sought::WIDEST.and_scalars())?;
    // Of a loop up to a loaded number, such as over the tokens of a sequence, the last iteration is hardly ever full. If its masks cost no width, they stay,
    // and no program waits for memory once more in a remainder loop.
    if is_loaded(func, around.upper) {
        let end = end(func, around, facts);
        let masked = plan(func, ops, facts, &usable, Sought::ending_at(&end).and_scalars());
        full = masked.filter(|masked| masked.accesses == full.accesses && only_grows(masked, index)).unwrap_or(full);
        full.has_short_distances = true;
    }
    let mut plan = full;
    let is_fine = only_grows(&plan, index);
    // An access stays wide only if its address keeps its alignment from one iteration to the next.
    // In a loop over shifted tiles, the step times the length of a row may be a multiple of 16 bytes though that length is not.
    let step = if has_shifted(func, around) { around.step_form(func) } else { Polynomial::constant(around.step_divisor(func)) };
    let distance = |affine: &Affine, bytes: i64| affine.start.coefficient(index)?.scaled(bytes).times(&step);
    let keeps = |distance: &Polynomial| distance.as_constant().is_none_or(|distance| distance % WIDEST == 0);
    let mut rows = Vec::new();
    plan.aligned.retain(|(_, affine, bytes)| {
        // If the length of a row is an argument, rows begin at boundaries of wide accesses if the length is a whole number of them.
        let distance = distance(affine, *bytes).filter(keeps);
        rows.extend(distance.clone().filter(|distance| !distance.is_multiple_of(WIDEST)).map(|distance| (distance, WIDEST)));
        distance.is_some()
    });
    plan.divisible.extend(rows);
    for (inst, width) in &mut plan.accesses {
        let Some(Access { base, offset, .. }) = func.inst(*inst).op.access() else { continue };
        let bytes = func.ty(base).dtype().bytes() as i64;
        if !facts.get(func, offset).and_then(|affine| distance(&affine, bytes)).is_some_and(|distance| keeps(&distance)) {
            *width = Width::Elements;
        }
    }
    is_fine.then_some(plan)
}

/// The end of a loop, as masks that end there state it.
fn end(func: &Function, around: &Loop, facts: &mut AffineFacts) -> Polynomial {
    facts.get(func, around.upper).map_or(Polynomial::scalar(around.upper), |affine| affine.start.clone())
}

/// Does the loop index only add to what a plan compares, and do the ends of bounds stay where they are?
fn only_grows(plan: &Plan, index: Value) -> bool {
    let grows = |number: &Polynomial| number.coefficient(index).is_some_and(|scale| !scale.looks_negative());
    let order_grows = |comparison: &Comparison| grows(&comparison.index.start) && is_same(&comparison.limit, index);
    let bounds_grow =
        plan.bounds.iter().all(|bound| grows(&bound.index.start) && bound.index.strides.iter().all(|stride| is_same(stride, index)));
    let ends_stay = plan.bounds.iter().all(|bound| moving_ends::stay(bound, index));
    let masks_grow = plan.masks.iter().all(|(_, test)| match test {
        Test::Order(comparison, _) => order_grows(comparison),
        Test::Uniform(_) => true,
    });
    bounds_grow
        && ends_stay
        && masks_grow
        && plan.distances().all(order_grows)
        && plan.divisible.iter().all(|(number, _)| is_same(number, index))
}

/// Is a number the same in all iterations?
fn is_same(number: &Polynomial, index: Value) -> bool {
    number.coefficient(index).is_some_and(|scale| scale.is(0))
}

/// Does the loop access shifted tiles?
fn has_shifted(func: &Function, around: &Loop) -> bool {
    func.region(around.body).insts.iter().any(|inst| is_shifted(&func.inst(*inst).op))
}

fn split(func: &mut Function, around: &Loop, mut plan: Plan, (facts, bits): (&mut AffineFacts, &mut Bits), out: &mut Vec<Inst>) {
    let (index, loc) = (around.index(func), func.inst(around.inst).loc);
    // The conditions for the first iteration.
    let scratch = func.add_region();
    let b = &mut Builder::new(func, scratch, loc);
    let scales = scales(&plan, index);
    // Where a mask ends at the end of the loop, the last iteration accesses the last element that the mask keeps.
    let (moving, bounds): (Vec<Bound>, Vec<Bound>) =
        std::mem::take(&mut plan.bounds).into_iter().partition(|bound| moving_ends::has(bound, index));
    plan.bounds = bounds;
    let mut is_full = first_is_full(b, &plan, &scales);
    for bound in &moving {
        let (start, zero) = (bound.index.uniform_value(b), b.index(0));
        let begins_inside = b.compare(CompareOp::Ge, start, zero);
        is_full = b.binary(BinaryOp::And, is_full, begins_inside);
    }
    let mut first_iteration = Substitution::new();
    first_iteration.insert(index, around.lower);
    substitute(func, scratch, &first_iteration);

    let b = &mut Builder::new(func, scratch, loc);
    let middle = if !moving.is_empty() || plan.distances().next().is_some() {
        // All iterations, or none: the slacks say nothing about the distances of ends.
        let end = end(b.func, around, facts);
        plan.bounds.extend(moving.into_iter().map(|bound| moving_ends::at_last(bound, &end, index)));
        let one = b.index(1);
        let last = b.binary(BinaryOp::Sub, around.upper, one);
        let ends_inside = last_is_inside(b, around, &plan, last, &scales);
        let is_inside = b.binary(BinaryOp::And, is_full, ends_inside);
        b.select(is_inside, around.upper, around.lower)
    } else if let Some(ends_full) = all_are_full(b, around, &plan, &scales, facts) {
        let cond = b.binary(BinaryOp::And, is_full, ends_full);
        let all = |_: &mut Builder<'_>| around.upper;
        choose(b, cond, all, |b| {
            let some = |b: &mut Builder<'_>| {
                let (slacks, whole) = (slacks(b, &plan, index), around.span(b));
                let span = full_span(b, slacks, whole);
                around.iterations_end(b, span, 1)
            };
            choose(b, is_full, some, |_| around.lower)
        })
    } else {
        let (slacks, whole) = (slacks(b, &plan, index), around.span(b));
        let (span, zero) = (full_span(b, slacks, whole), b.index(0));
        let span = b.select(is_full, span, zero);
        around.iterations_end(b, span, 1)
    };
    substitute(func, scratch, &first_iteration);
    out.append(func.insts_mut(scratch));

    // The iterations of the main loop load without waiting for the test between the other versions.
    let b = &mut Builder::new(func, scratch, loc);
    let guarded = guarded_run(b.func, around, &plan).map(|run| {
        let has_begun = b.compare(CompareOp::Gt, middle, around.lower);
        Guarded::new(b, around, &plan, run, has_begun, facts)
    });
    substitute(func, scratch, &first_iteration);
    let tests = std::mem::take(func.insts_mut(scratch));

    let first = full_body(func, around, &plan);
    let in_bounds = guarded.as_ref().and_then(|guarded| guarded.masked.as_ref()).map(|masked| full_body(func, around, masked));
    mask_by_position(func, around, facts, bits);
    let whole = func.inst(around.inst).op.clone();
    out.extend(split_for(func, around.inst, middle, (first, around.step), false));
    out.extend(tests);
    if let Some(guarded) = guarded {
        guarded.add(func, around, whole, in_bounds);
    }
}

/// A copy of the loop's body for iterations that meet the conditions of a plan.
fn full_body(func: &mut Function, around: &Loop, plan: &Plan) -> Region {
    let body = func.region(around.body).clone();
    let (copy, mut map) = (func.add_region(), Substitution::new());
    for param in &body.params {
        let ty = func.ty(*param).clone();
        let of_copy = func.add_region_param(copy, ty);
        map.insert(*param, of_copy);
    }
    copy_insts(func, around.body, copy, &mut map);
    let (index, of_copy) = (body.params[0], func.region(copy).params[0]);
    make_full(func, &body.insts[..body.insts.len() - 1], copy, plan, &mut map);
    // What the plan computes in the copy depends on the index, too.
    let mut of_index = Substitution::new();
    of_index.insert(index, of_copy);
    substitute(func, copy, &of_index);
    copy
}

/// Appends the condition of the first iteration, and a test that the numbers that a plan compares grow slowly with the loop index.
fn first_is_full(b: &mut Builder<'_>, plan: &Plan, scales: &[Polynomial]) -> Value {
    let mut is_full = condition(b, plan);
    for scale in scales.iter().filter(|scale| scale.as_constant().is_none()) {
        let scale = scale.value(b);
        let is_short = bounds::is_below(b, scale, LONGEST_STEP);
        is_full = b.binary(BinaryOp::And, is_full, is_short);
    }
    is_full
}

/// Appends an index that is computed in one of two ways.
fn choose(
    b: &mut Builder<'_>,
    cond: Value,
    then: impl FnOnce(&mut Builder<'_>) -> Value,
    otherwise: impl FnOnce(&mut Builder<'_>) -> Value,
) -> Value {
    let loc = b.loc;
    let [then_region, else_region] = [0; 2].map(|_| b.func.add_region());
    let inner = &mut Builder::new(b.func, then_region, loc);
    let value = then(inner);
    inner.yield_values(vec![value]);
    let inner = &mut Builder::new(b.func, else_region, loc);
    let value = otherwise(inner);
    inner.yield_values(vec![value]);
    let branch = b.func.append(b.region, Op::If { cond, then_region, else_region, rare: false }, [Type::scalar(Dtype::I64)], loc);
    b.func.inst(branch).results[0]
}

/// Appends a test: if the first iteration is full, are all others full, too? `None` if it costs as much as to compute where full iterations end.
///
/// That takes a division for each distance or step that is an argument, which many programs of a launch would wait for. The test divides nothing. It looks at
/// the last iteration, which is full in most launches if a program takes every so many rows.
fn all_are_full(b: &mut Builder<'_>, around: &Loop, plan: &Plan, scales: &[Polynomial], facts: &mut AffineFacts) -> Option<Value> {
    let divides = around.constant_step(b.func).is_none() || scales.iter().any(|scale| scale.as_constant().is_none());
    // A mask that begins within a row says nothing of its end.
    let ends = |test: &Test| !matches!(test, Test::Order(Comparison { op: CompareOp::Gt | CompareOp::Ge, .. }, _));
    if !divides || !plan.masks.iter().all(|(_, test)| ends(test)) {
        return None;
    }
    let last = last_index(b, around, facts)?;
    Some(last_is_inside(b, around, plan, last, scales))
}

/// Appends a loop index that no iteration exceeds. `None` if the first one is not known.
fn last_index(b: &mut Builder<'_>, around: &Loop, facts: &mut AffineFacts) -> Option<Value> {
    // No index exceeds the last multiple below `upper` of what divides all indices.
    let divisor = 1 << around.step_divisor(b.func).trailing_zeros().min(20);
    let lower = facts.get(b.func, around.lower)?;
    let one = b.index(1);
    let mut last = b.binary(BinaryOp::Sub, around.upper, one);
    if divisor > 1 && lower.start.is_multiple_of(divisor) {
        let multiples = b.index((-divisor).into());
        last = b.binary(BinaryOp::And, last, multiples);
    }
    Some(last)
}

/// Appends a test: are the accesses of the last iteration in bounds, and do the masks of the plan hold? If that is so in the first iteration, too, it is so in
/// all of them: what the plan compares grows with the loop index, by `scales`.
fn last_is_inside(b: &mut Builder<'_>, around: &Loop, plan: &Plan, last: Value, scales: &[Polynomial]) -> Value {
    // From the first iteration to the last one, a sum grows by less than 2^62. So it cannot wrap and be inside again.
    let constants: Option<Vec<i64>> = scales.iter().map(Polynomial::as_constant).collect();
    let most = constants.map_or(MOST / LONGEST_STEP, |scales| MOST / scales.into_iter().max().unwrap_or(1).max(1));
    let (zero, most) = (b.index(0), b.index(most.into()));
    let is_natural = b.compare(CompareOp::Ge, around.lower, zero);
    let is_short = b.compare(CompareOp::Lt, around.upper, most);
    let (region, scratch) = (b.region, b.func.add_region());
    b.region = scratch;
    let is_inside = is_inside(b, plan);
    let mut last_iteration = Substitution::new();
    last_iteration.insert(around.index(b.func), last);
    substitute(b.func, scratch, &last_iteration);
    let mut ops = std::mem::take(b.func.insts_mut(scratch));
    b.region = region;
    b.func.insts_mut(region).append(&mut ops);
    let is_near = b.binary(BinaryOp::And, is_natural, is_short);
    b.binary(BinaryOp::And, is_near, is_inside)
}

/// By how much each condition's number grows with the loop index.
fn scales(plan: &Plan, index: Value) -> Vec<Polynomial> {
    let bounds = plan.bounds.iter().map(|bound| &bound.index.start);
    let masks = plan.masks.iter().filter_map(|(_, test)| if let Test::Order(order, _) = test { Some(&order.index.start) } else { None });
    let distances = plan.distances().map(|comparison| &comparison.index.start);
    bounds.chain(masks).chain(distances).filter_map(|start| start.coefficient(index)).filter(|scale| !scale.is(0)).collect()
}
