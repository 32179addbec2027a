//! Loops: the iterations of a counted loop, the values that may change in each iteration, and by how much a carried value changes.
//!
//! ```text
//! %5 = for %lower, %upper, %step, %at (%i: i64, %offsets: tile<i64, [64]>) {
//!     %3 = add %offsets, %wide           offsets move by `%n` in each iteration, if %wide = broadcast %n
//!     yield %3
//! }
//!
//! %lower   %upper   %step            iterations
//! 0        10       4                %i = 0, 4, 8: the last index is 8
//! 10       0        4                none
//! 0        %n       %s               none unless 0 < %n and %s > 0
//! ```
//!
//! For bounds that are not constants, functions append ops that compute the answer. Bounds may be any `i64`, so the documentation of each
//! function says what it computes where a sum overflows.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::{Affine, AffineFacts};
use crate::analysis::factors::Factors;
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Region, SideTable, Value};

/// A carried tile with more additions in an iteration has no known step.
const MOST_SUMS: usize = 64;
/// The bound of a loop is followed through so many ops.
const MOST_NESTED: u32 = 8;

/// A loop whose index is an `i64`. It has iterations for `lower`, `lower + step` and so on below `upper`, and none if the step is not positive.
pub struct Loop {
    /// The op.
    pub inst: Inst,
    /// The first index.
    pub lower: Value,
    /// The end of the indices.
    pub upper: Value,
    /// The distance from one index to the next.
    pub step: Value,
    /// The region of an iteration.
    pub body: Region,
}

/// The loops of a kernel by their indices.
pub fn by_index(func: &Function) -> FxHashMap<Value, Loop> {
    let loops = func.all_insts().into_iter().filter_map(|inst| Loop::of(func, inst));
    loops.map(|around| (around.index(func), around)).collect()
}

impl Loop {
    /// The loop, if the op is one.
    pub fn of(func: &Function, inst: Inst) -> Option<Loop> {
        let Op::For { lower, upper, step, body, .. } = func.inst(inst).op else { return None };
        (func.ty(lower).dtype() == Dtype::I64).then_some(Loop { inst, lower, upper, step, body })
    }

    /// The index.
    pub fn index(&self, func: &Function) -> Value {
        func.region(self.body).params[0]
    }

    /// The step, if it is a positive constant.
    pub fn constant_step(&self, func: &Function) -> Option<i64> {
        constant(func, self.step).filter(|step| *step > 0)
    }

    /// A number that divides the step, such as 1024 of `num_programs(0) * 1024`.
    pub fn step_divisor(&self, func: &Function) -> i64 {
        i64::try_from(Factors::of(func, self.step).constant()).unwrap_or(1)
    }

    /// The step as a polynomial.
    pub fn step_form(&self, func: &Function) -> Polynomial {
        self.constant_step(func).map_or(Polynomial::scalar(self.step), Polynomial::constant)
    }

    /// The first and the last index, if the bounds are constants and the loop has iterations.
    pub fn index_range(&self, func: &Function) -> Option<(i64, i64)> {
        self.indices_below(func, constant(func, self.upper)?)
    }

    /// The first index and a number that no index exceeds, if constants bound the loop: `0 .. min(%n, 1024)` has no index above 1023.
    pub fn index_bounds(&self, func: &Function) -> Option<(i64, i64)> {
        self.indices_below(func, greatest(func, self.upper, MOST_NESTED)?)
    }

    fn indices_below(&self, func: &Function, upper: i64) -> Option<(i64, i64)> {
        let (lower, step) = (constant(func, self.lower)?, self.constant_step(func)?);
        let span = upper.checked_sub(lower).filter(|span| *span > 0)?;
        Some((lower, lower + (span - 1) / step * step))
    }

    /// Appends `upper - lower`. The result is 0 if the loop has no iteration, or if an index after its last one would not fit 64 bits.
    pub fn span(&self, b: &mut Builder<'_>) -> Value {
        let most = b.index(i64::MAX.into());
        let last = b.binary(BinaryOp::Sub, most, self.step);
        let fits = b.compare(CompareOp::Le, self.upper, last);
        let runs = b.compare(CompareOp::Lt, self.lower, self.upper);
        let is_fine = b.binary(BinaryOp::And, fits, runs);
        let span = b.binary(BinaryOp::Sub, self.upper, self.lower);
        // A difference that overflows is negative.
        let zero = b.index(0);
        let span = b.binary(BinaryOp::Max, span, zero);
        b.select(is_fine, span, zero)
    }

    /// Appends the index after the iterations that begin less than `span` after the first one, in whole groups of `group` iterations. A
    /// [`Loop::span`] is so small that no sum overflows.
    pub fn iterations_end(&self, b: &mut Builder<'_>, span: Value, group: i64) -> Value {
        let (zero, one) = (b.index(0), b.index(1));
        let span = b.binary(BinaryOp::Max, span, zero);
        let before = b.binary(BinaryOp::Sub, span, one);
        let mut iterations = match self.constant_step(b.func).filter(|step| step.count_ones() == 1) {
            // The shift rounds down, so a distance of 0 gives no iteration.
            Some(step) => {
                let bits = b.index(step.trailing_zeros().into());
                let before = b.binary(BinaryOp::Shr, before, bits);
                b.binary(BinaryOp::Add, before, one)
            }
            None => {
                let before = b.binary(BinaryOp::Div, before, self.step);
                let iterations = b.binary(BinaryOp::Add, before, one);
                let has_iterations = b.compare(CompareOp::Gt, span, zero);
                b.select(has_iterations, iterations, zero)
            }
        };
        if group > 1 {
            let (count, low_bits) = (b.index(group.into()), b.index((group - 1).into()));
            let rest = if group.count_ones() == 1 {
                b.binary(BinaryOp::And, iterations, low_bits)
            } else {
                b.binary(BinaryOp::Rem, iterations, count)
            };
            iterations = b.binary(BinaryOp::Sub, iterations, rest);
        }
        let distance = b.binary(BinaryOp::Mul, iterations, self.step);
        b.binary(BinaryOp::Add, self.lower, distance)
    }

    /// Appends a test: does the loop have an iteration?
    pub fn runs(&self, b: &mut Builder<'_>) -> Value {
        let has_room = b.compare(CompareOp::Lt, self.lower, self.upper);
        if self.constant_step(b.func).is_some() {
            return has_room;
        }
        let zero = b.index(0);
        let moves = b.compare(CompareOp::Gt, self.step, zero);
        b.binary(BinaryOp::And, has_room, moves)
    }

    /// Appends the distance that the loop index moves in that many iterations, and whether it overflows.
    pub fn distance(&self, b: &mut Builder<'_>, iterations: u32) -> Distance {
        if let Some(distance) = self.constant_step(b.func).and_then(|step| step.checked_mul(iterations.into())) {
            return Distance { value: b.index(distance.into()), fits: None };
        }
        let iterations = b.index(iterations.into());
        let value = b.binary(BinaryOp::Mul, self.step, iterations);
        let (step, iterations) = (b.bitcast(self.step, Dtype::U64), b.bitcast(iterations, Dtype::U64));
        let high = b.binary(BinaryOp::MulHigh, step, iterations);
        let zero = b.int_like(0, high);
        Distance { value, fits: Some(b.compare(CompareOp::Eq, high, zero)) }
    }

    /// Appends a test: is there an iteration at `distance` from the iteration with index `index`?
    pub fn is_left(&self, b: &mut Builder<'_>, index: Value, distance: Distance) -> Value {
        // For an index below `upper` the difference is positive. It may not fit 63 bits, so the comparison is unsigned.
        let left = b.binary(BinaryOp::Sub, self.upper, index);
        let (left, far) = (b.bitcast(left, Dtype::U64), b.bitcast(distance.value, Dtype::U64));
        let is_left = b.compare(CompareOp::Gt, left, far);
        distance.fits.map_or(is_left, |fits| b.binary(BinaryOp::And, is_left, fits))
    }
}

/// A distance of loop indices, modulo 2^64.
#[derive(Clone, Copy)]
pub struct Distance {
    /// The distance.
    pub value: Value,
    /// Does the exact distance fit 64 bits? `None` if that is certain.
    fits: Option<Value>,
}

/// The bodies of the guarded loops of a kernel.
pub fn guarded_bodies(func: &Function) -> FxHashSet<Region> {
    let bodies = func.all_insts().into_iter().filter_map(|inst| match func.inst(inst).op {
        Op::For { body, guarded: true, .. } => Some(body),
        _ => None,
    });
    bodies.collect()
}

/// The values that these regions and the regions in them define. Of a loop's regions, these are the values that may change in each iteration.
pub fn defined_in(func: &Function, regions: &[Region]) -> SideTable<Value, bool> {
    let mut defined = SideTable::new();
    for region in regions.iter().flat_map(|region| func.regions_under(*region)) {
        func.region(region).params.iter().for_each(|param| defined[*param] = true);
        func.region(region).insts.iter().flat_map(|inst| &func.inst(*inst).results).for_each(|result| defined[*result] = true);
    }
    defined
}

/// The values from outside that the ops of these regions and of the regions in them use, each once, in the order of their first uses.
pub fn captured(func: &Function, regions: &[Region]) -> Vec<Value> {
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    let all: Vec<Region> = regions.iter().flat_map(|region| func.regions_under(*region)).collect();
    for region in all {
        seen.extend(&func.region(region).params);
        func.region(region).insts.iter().for_each(|inst| seen.extend(&func.inst(*inst).results));
    }
    let mut captured = Vec::new();
    for region in regions {
        func.for_each_inst(*region, &mut |inst| {
            func.inst(inst).op.for_each_operand(&mut |value| captured.extend(seen.insert(value).then_some(value)));
        });
    }
    captured
}

/// The value of a bound or a step, if it is a constant.
pub fn constant(func: &Function, value: Value) -> Option<i64> {
    match func.def_op(value) {
        Some(Op::Const { value }) => value.as_int().and_then(|number| i64::try_from(number).ok()),
        _ => None,
    }
}

/// A number that a scalar never exceeds, as far as minima, selections and constants tell.
fn greatest(func: &Function, value: Value, nested: u32) -> Option<i64> {
    let of = |value: Value| greatest(func, value, nested.checked_sub(1)?);
    match *func.def_op(value)? {
        Op::Binary { op: BinaryOp::Min, lhs, rhs } => match (of(lhs), of(rhs)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        },
        Op::Binary { op: BinaryOp::Max, lhs, rhs } => Some(of(lhs)?.max(of(rhs)?)),
        // What is added is not negative, so no sum wraps to a large number.
        Op::Binary { op: BinaryOp::Add, lhs, rhs } => of(lhs)?.checked_add(constant(func, rhs).filter(|added| *added >= 0)?),
        Op::Binary { op: BinaryOp::Shr, lhs, rhs } => Some(of(lhs)? >> constant(func, rhs).filter(|bits| (0..64).contains(bits))?),
        Op::Select { on_true, on_false, .. } => Some(of(on_true)?.max(of(on_false)?)),
        _ => constant(func, value),
    }
}

/// The number that each iteration adds to a value that the loop carries, at `position` among those, if it is the same for all elements. For a
/// tile it is a sum of the uniform tiles that the body adds. It may differ between iterations: the caller decides which scalars it accepts.
pub fn carried_step(func: &Function, facts: &mut AffineFacts, body: Region, position: usize) -> Option<Affine> {
    let (param, next) = (func.region(body).params[position + 1], func.yielded(body)[position]);
    if func.ty(param).is_scalar() {
        return Some(facts.get(func, next)?.minus(&*facts.get(func, param)?));
    }
    let mut at = next;
    let mut total = Affine::uniform(Polynomial::default(), func.ty(param).shape().len());
    let mut sums = 0;
    while at != param {
        sums += 1;
        if sums > MOST_SUMS {
            return None;
        }
        let Some(Op::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), lhs, rhs }) = func.def_op(at) else { return None };
        let mut uniform = |value: Value| facts.get(func, value).filter(|form| form.is_uniform());
        match (uniform(*lhs), uniform(*rhs)) {
            (None, Some(rhs)) => {
                total = if *op == BinaryOp::Add { total.plus(&rhs) } else { total.minus(&rhs) };
                at = *lhs;
            }
            (Some(lhs), None) if *op == BinaryOp::Add => {
                total = total.plus(&lhs);
                at = *rhs;
            }
            _ => return None,
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashSet;

    use super::*;
    use crate::ir::Handle;

    /// A kernel with one loop. `counts` are its lower bound, its upper bound and its step; `body` computes `%next` from `%at`.
    fn looping(counts: &str, body: &str) -> (Function, Inst) {
        let text = format!(
            "kernel @k(%x: tile<i64, [8]>, %n: i64) {{
                %0 = const {{value = 0}} : i64
                %1 = const {{value = 4}} : i64
                %2 = const {{value = 10}} : i64
                %3 = const {{value = -4}} : i64
                %4 = broadcast %n : tile<i64, [8]>
                %end = for {counts}, %x (%i: i64, %at: tile<i64, [8]>) {{
                    {body}
                    yield %next
                }} : tile<i64, [8]>
                return
            }}"
        );
        let func = crate::ir::parse(&text).expect("it is well formed");
        let found = func.all_insts().into_iter().find(|inst| matches!(func.inst(*inst).op, Op::For { .. })).expect("it has a loop");
        (func, found)
    }

    const STAYS: &str = "%next = add %at, %4 : tile<i64, [8]>";

    #[test]
    fn constants_give_the_range_of_an_index() {
        let range = |counts: &str| {
            let (func, inst) = looping(counts, STAYS);
            let around = Loop::of(&func, inst).expect("it counts in `i64`");
            (around.constant_step(&func), around.index_range(&func))
        };
        assert_eq!(range("%0, %2, %1"), (Some(4), Some((0, 8))));
        assert_eq!(range("%3, %2, %1"), (Some(4), Some((-4, 8))));
        assert_eq!(range("%2, %0, %1"), (Some(4), None), "it has no iteration");
        assert_eq!(range("%0, %2, %3"), (None, None), "the step is negative");
        assert_eq!(range("%0, %n, %1"), (Some(4), None), "the end is an argument");
        assert_eq!(range("%0, %2, %n"), (None, None), "the step is an argument");
    }

    #[test]
    fn minima_and_selections_bound_an_index() {
        let bounds = |low: &str| {
            let text = format!(
                "kernel @k(%n: i64, %m: i64) {{
                    %0 = const {{value = 0}} : i64
                    %1 = const {{value = 4}} : i64
                    %2 = const {{value = 10}} : i64
                    {low}
                    %less = lt %n, %m : bool
                    %end = select %less, %low, %2 : i64
                    for %0, %end, %1 (%i: i64) {{
                        yield
                    }}
                    return
                }}"
            );
            let func = crate::ir::parse(&text).expect("it is well formed");
            let found = func.all_insts().into_iter().find_map(|inst| Loop::of(&func, inst)).expect("it has a loop");
            found.index_bounds(&func)
        };
        assert_eq!(bounds("%low = min %n, %1 : i64"), Some((0, 8)), "the other side is 10");
        assert_eq!(bounds("%more = const {value = 21} : i64\n%low = min %more, %n : i64"), Some((0, 20)));
        assert_eq!(bounds("%low = max %n, %1 : i64"), None, "one side of a maximum has no bound");
        let slices =
            "%kept = min %n, %2 : i64\n%begun = add %kept, %1 : i64\n%counted = shr %begun, %0 : i64\n%low = max %counted, %2 : i64";
        assert_eq!(bounds(slices), Some((0, 12)), "the largest sum is 14");
        assert_eq!(
            bounds("%m1 = const {value = -1} : i64\n%kept = min %n, %2 : i64\n%low = add %kept, %m1 : i64"),
            None,
            "the sum may wrap"
        );
        assert_eq!(bounds("%low = min %n, %m : i64"), None, "neither side has a bound");
    }

    #[test]
    fn a_loop_defines_its_parameters_and_the_results_in_it() {
        let (func, inst) = looping("%0, %2, %1", STAYS);
        let body = Loop::of(&func, inst).expect("it counts in `i64`").body;
        let next = func.yielded(body)[0];
        let expected: Vec<Value> = func.region(body).params.iter().copied().chain([next]).collect();
        let defined = defined_in(&func, &[body]);
        let all = (0..func.value_count()).map(Value::new).filter(|value| defined[*value]);
        assert_eq!(all.collect::<FxHashSet<_>>(), expected.into_iter().collect());
    }

    #[test]
    fn a_carried_tile_moves_by_what_is_added_to_all_its_elements() {
        let step = |body: &str| {
            let (func, inst) = looping("%0, %2, %1", body);
            let around = Loop::of(&func, inst).expect("it counts in `i64`");
            let n = func.params[1].value;
            carried_step(&func, &mut AffineFacts::new(), around.body, 0).map(|step| {
                let steps = step.start.coefficient(n).and_then(|count| count.as_constant());
                (step.is_uniform(), steps)
            })
        };
        assert_eq!(step(STAYS), Some((true, Some(1))));
        assert_eq!(
            step("%a = add %4, %at : tile<i64, [8]>\n%b = add %a, %4 : tile<i64, [8]>\n%next = sub %b, %4 : tile<i64, [8]>"),
            Some((true, Some(1)))
        );
        assert_eq!(step("%next = sub %at, %4 : tile<i64, [8]>"), Some((true, Some(-1))));
        assert_eq!(step("%next = sub %4, %at : tile<i64, [8]>"), None, "it changes its sign");
        assert_eq!(step("%next = add %at, %x : tile<i64, [8]>"), None, "elements move by different distances");
        assert_eq!(step("%next = mul %at, %4 : tile<i64, [8]>"), None, "it grows");
        let long: String = (0..=MOST_SUMS).map(|at| format!("%s{} = add %s{at}, %4 : tile<i64, [8]>\n", at + 1)).collect();
        let body = format!("%s0 = add %at, %4 : tile<i64, [8]>\n{long}%next = add %s{}, %4 : tile<i64, [8]>", MOST_SUMS + 1);
        assert_eq!(step(&body), None, "the sum is too long");
    }
}
