//! Alignment of loops that carry accumulators: a peeled first iteration starts at an aligned address, so the main loop loads 16 bytes a thread.
//!
//! Each iteration adds a tile of positions to an accumulator tile, and a reduction consumes the accumulator behind the loop. If a row starts `behind` elements after a multiple of
//! 16 bytes, the shifted loop starts at that multiple. Each position then belongs to the element `behind` to the right of its old one:
//!
//! ```text
//! tile of 8, row of 20      shifted by 3
//!  0  1  2  3  4  5  6  7    .  .  .  0  1  2  3  4     first iteration: it loads the elements in front of the row, and does not add them
//!  8  9 10 11 12 13 14 15    5  6  7  8  9 10 11 12     main loop: no masks
//! 16 17 18 19               13 14 15 16 17 18 19  .     remainder loop
//! ```
//!
//! Each element accumulates the same positions in the same order. Only the reduction sees the elements in another order, so its operator must be symmetric. The number of masked
//! positions that an element accumulates may differ, so a masked position must not change the accumulator.
//!
//! A program runs the shifted loop if the row fills at least [`FEWEST_TILES`] tiles, all loads are aligned at the same position, and all loaded elements are in bounds. Otherwise it
//! runs the original loop.

use rustc_hash::FxHashMap;

use crate::analysis::loops::Loop;
use crate::analysis::polynomial::Polynomial;
use crate::analysis::symmetry::is_symmetric;
use crate::dtype::Dtype;
use crate::ir::rewrite::{Substitution, copy_insts, copy_regions, replace_by_branch, split_for, yield_op};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Handle, Inst, Op, Region, Type, UnaryOp, Value};

use super::{MOST_OPS, Positions, Versions, WIDEST, takes_partial_runs};

/// A shorter loop saves fewer instructions than the tests and the first iteration cost.
const FEWEST_TILES: i64 = 4;

/// A loop that may begin elsewhere.
pub(super) struct Plan {
    /// The loads, of which the first has the shortest elements.
    rows: Vec<Row>,
    /// The elements of a tile, and the step of the loop.
    elements: i64,
}

/// The elements that a load reads in all iterations.
struct Row {
    base: Value,
    /// The index of the first element.
    start: Polynomial,
    /// The bytes of an element.
    bytes: i64,
}

impl Plan {
    /// `None` if the loop may not begin elsewhere, or gains nothing by that. `uses` counts the uses of each value.
    pub(super) fn of(func: &Function, around: &Loop, uses: &[u32]) -> Option<Plan> {
        let (last, insts) = func.region(around.body).insts.split_last()?;
        let divides = |inst: &Inst| matches!(func.inst(*inst).op, Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, .. });
        // What divides an index is cheaper if the first index is known.
        if insts.len() > MOST_OPS || !matches!(func.inst(*last).op, Op::Yield { .. }) || insts.iter().any(divides) {
            return None;
        }
        let mut positions = Positions::new(func, around)?;
        let elements = positions.elements as i64;
        let mut rows = Vec::new();
        for inst in insts {
            match func.inst(*inst).op {
                Op::Load { base, offset, mask: Some(mask), .. }
                    if positions.is_only_end(mask) && takes_partial_runs(func, &func.inst(*inst).op) =>
                {
                    rows.push(Row { base, start: positions.start(offset)?, bytes: func.ty(base).dtype().bytes() as i64 });
                }
                Op::Load { .. } | Op::Store { .. } => return None,
                _ => {}
            }
        }
        rows.sort_by_key(|row| row.bytes);
        rows.dedup_by(|row, before| row.base == before.base && row.start == before.start);
        let shortest = rows.first()?;
        let gains = shortest.bytes < WIDEST && !shortest.start.is_multiple_of(WIDEST / shortest.bytes);
        let is_fine = elements.count_ones() == 1
            && gains
            && insts.iter().all(|inst| positions.is_independent(*inst, &FxHashMap::default()))
            && may_rotate(func, around, uses, &mut positions);
        is_fine.then_some(Plan { rows, elements })
    }

    /// Makes a version of the loop that begins where its loads are aligned. Returns the branch with both, and the ops in front of it.
    pub(super) fn align(&self, func: &mut Function, around: &Loop) -> (Vec<Inst>, Versions) {
        let loc = func.inst(around.inst).loc;
        let front = func.add_region();
        let (keeps, behind) = self.test(&mut Builder::new(func, front, loc), around);
        let (branch, [given, shifted]) = replace_by_branch(func, around.inst, front, keeps, false);
        yield_op(func, given, around.inst);

        let (begin, first) = self.first_iteration(func, around, shifted, behind);
        let (_, full) = copied(func, around, Part::Whole);
        let (mut rest, _) = copied(func, around, Part::Masked);
        if let Op::For { lower, init, .. } = &mut rest {
            (*lower, *init) = (begin, first);
        }
        let b = &mut Builder::new(func, shifted, loc);
        let left = b.binary(BinaryOp::Sub, around.upper, begin);
        let whole = b.index((-self.elements).into());
        let left = b.binary(BinaryOp::And, left, whole);
        let middle = b.binary(BinaryOp::Add, begin, left);
        let types: Vec<Type> = func.inst(around.inst).results.iter().map(|result| func.ty(*result).clone()).collect();
        let rest = func.make_inst(rest, types, loc);
        let main = split_for(func, rest, middle, (full, around.step), false);
        func.insts_mut(shifted).extend(main.into_iter().chain([rest]));
        let of_rest = func.inst(rest).results.to_vec();
        Builder::new(func, shifted, loc).yield_values(of_rest);
        (std::mem::take(func.insts_mut(front)), Versions { branch, regions: [given, shifted] })
    }

    /// Appends the test for the original loop, and the number of elements between the rows and the multiple of 16 bytes in front of them.
    fn test(&self, b: &mut Builder<'_>, around: &Loop) -> (Value, Value) {
        let (span, few) = (around.span(b), b.index((FEWEST_TILES * self.elements).into()));
        let is_short = b.compare(CompareOp::Lt, span, few);
        let [then_region, else_region] = [0; 2].map(|_| b.func.add_region());
        let short = &mut Builder::new(b.func, then_region, b.loc);
        let values = vec![short.constant(ConstExpr::Bool(true), Type::scalar(Dtype::Bool)), short.index(0)];
        short.yield_values(values);
        let long = &mut Builder::new(b.func, else_region, b.loc);
        let values = self.test_long(long, span);
        long.yield_values(values);
        let test = Op::If { cond: is_short, then_region, else_region, rare: false };
        let test = b.func.append(b.region, test, [Dtype::Bool, Dtype::I64].map(Type::scalar), b.loc);
        let results = &b.func.inst(test).results;
        (results[0], results[1])
    }

    /// The same values for a loop of `span` positions that fill enough tiles.
    fn test_long(&self, b: &mut Builder<'_>, span: Value) -> Vec<Value> {
        let (zero, low_bits) = (b.index(0), b.index((WIDEST - 1).into()));
        let (mut behind, mut keeps) = (None, None);
        for row in &self.rows {
            let (address, start, log) = (b.address(row.base), row.start.value(b), b.index(row.bytes.trailing_zeros().into()));
            let offset = b.binary(BinaryOp::Shl, start, log);
            let address = b.binary(BinaryOp::Add, address, offset);
            let low = b.binary(BinaryOp::And, address, low_bits);
            let behind = *behind.get_or_insert_with(|| b.binary(BinaryOp::Shr, low, log));
            let distance = b.binary(BinaryOp::Shl, behind, log);
            let is_elsewhere = b.compare(CompareOp::Ne, low, distance);
            // The first iteration also loads the elements in front of the row. `room` overflows only if `start` is negative, which `begins_outside` excludes.
            let begins_outside = b.compare(CompareOp::Lt, start, behind);
            let length = b.length(row.base);
            let room = b.binary(BinaryOp::Sub, length, start);
            let ends_outside = b.compare(CompareOp::Lt, room, span);
            for test in [is_elsewhere, begins_outside, ends_outside] {
                keeps = Some(keeps.map_or(test, |keeps| b.binary(BinaryOp::Or, keeps, test)));
            }
        }
        let behind = behind.unwrap_or(zero);
        let is_aligned = b.compare(CompareOp::Eq, behind, zero);
        vec![keeps.map_or(is_aligned, |keeps| b.binary(BinaryOp::Or, keeps, is_aligned)), behind]
    }

    /// Appends the first iteration. Returns where the second one begins, and what the first one accumulates.
    fn first_iteration(&self, func: &mut Function, around: &Loop, region: Region, behind: Value) -> (Value, Vec<Value>) {
        let loc = func.inst(around.inst).loc;
        let Op::For { init: given, .. } = func.inst(around.inst).op.clone() else { return (around.lower, Vec::new()) };
        let b = &mut Builder::new(func, region, loc);
        let first = b.binary(BinaryOp::Sub, around.lower, behind);
        let elements = b.index(self.elements.into());
        let begin = b.binary(BinaryOp::Add, first, elements);
        let mut copies = Substitution::new();
        copies.insert(around.index(b.func), first);
        for (param, given) in b.func.region(around.body).params[1..].iter().zip(&given) {
            copies.insert(*param, *given);
        }
        let before = b.func.region(region).insts.len();
        copy_insts(func, around.body, region, &mut copies);
        func.insts_mut(region).pop();
        in_bounds(func, region, before, Part::Whole);
        let next: Vec<Value> = func.yielded(around.body).iter().map(|value| copies.get(*value)).collect();
        let b = &mut Builder::new(func, region, loc);
        let end = ConstExpr::Int(self.elements.into());
        let positions = b.op(Op::Arange { start: ConstExpr::Int(0), end: end.clone() }, &[]);
        let before = b.broadcast(behind, &[end]);
        let is_of_row = b.compare(CompareOp::Ge, positions, before);
        (begin, given.into_iter().zip(next).map(|(given, next)| b.select(is_of_row, next, given)).collect())
    }
}

/// A copy of a loop, whose loads read these elements.
fn copied(func: &mut Function, around: &Loop, part: Part) -> (Op, Region) {
    let mut copy = func.inst(around.inst).op.clone();
    copy_regions(func, &mut copy, &mut Substitution::new());
    let Op::For { body, .. } = copy else { unreachable!("a `Loop` is a `for`") };
    in_bounds(func, body, 0, part);
    (copy, body)
}

/// Which elements the loads of an iteration read.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// Those of a whole tile, in wide accesses.
    Whole,
    /// Those that the mask keeps.
    Masked,
}

/// Marks the loads of a region as in bounds, from one of its ops on.
fn in_bounds(func: &mut Function, region: Region, from: usize, part: Part) {
    let insts = func.region(region).insts[from..].to_vec();
    for inst in insts {
        let op = &mut func.inst_mut(inst).op;
        if let Op::Load { mask, .. } = *op {
            op.set_lanes(mask.filter(|_| part == Part::Masked), true);
            op.set_align(if part == Part::Whole { WIDEST as u32 } else { 0 });
        }
    }
}

/// May the elements of the carried tiles change places?
fn may_rotate<'a>(func: &'a Function, around: &Loop, uses: &[u32], positions: &mut Positions<'a>) -> bool {
    let (body, results) = (func.region(around.body), &func.inst(around.inst).results);
    let Op::For { init, .. } = &func.inst(around.inst).op else { return false };
    let mut reduced = vec![0; results.len()];
    for inst in func.all_insts() {
        if let Op::Reduce { inputs, combine, .. } = &func.inst(inst).op
            && let [input] = inputs[..]
            && let Some(at) = results.iter().position(|result| *result == input)
            && is_symmetric(func, *combine)
        {
            reduced[at] += 1;
        }
    }
    let is_reduced = |at: usize| uses.get(results[at].index()) == Some(&reduced[at]);
    let carried = body.params[1..].iter().zip(func.yielded(around.body)).enumerate();
    let mut masked = Masked { func, positions, known: FxHashMap::default() };
    !results.is_empty()
        && carried.into_iter().all(|(at, (param, next))| {
            func.ty(*param).extents()[..] == [masked.positions.elements] && is_reduced(at) && masked.accumulates(init[at], *param, *next)
        })
}

/// The values of a loop's tiles at positions where its loads are masked.
struct Masked<'a, 'b> {
    func: &'a Function,
    positions: &'b mut Positions<'a>,
    known: FxHashMap<Value, Option<f64>>,
}

impl Masked<'_, '_> {
    /// Is a value the carried tile, combined with functions of the position that change nothing where a position is masked? `given` is the tile
    /// before the loop.
    fn accumulates(&mut self, given: Value, param: Value, value: Value) -> bool {
        let (mut at, mut ops) = (value, Vec::new());
        while at != param {
            let Some(&Op::Binary { op, lhs, rhs }) = self.func.def_op(at) else { return false };
            ops.push(op);
            at = match () {
                () if self.changes_nothing(op, rhs) => lhs,
                () if op.is_commutative() && self.changes_nothing(op, lhs) => rhs,
                () => return false,
            };
        }
        !self.func.ty(param).dtype().is_float() || self.stays_the_same(given, &ops)
    }

    /// Does a neutral number leave an accumulator of floats as it is? 0.0 changes -0.0, and an infinity changes NaN. Sums that begin as another number
    /// than -0.0 never become -0.0, and maxima that do not begin as NaN never become NaN.
    fn stays_the_same(&self, given: Value, ops: &[BinaryOp]) -> bool {
        let Some(given) = self.func.splat(given).and_then(|given| given.as_number()) else { return false };
        let are = |some: &[BinaryOp]| ops.iter().all(|op| some.contains(op));
        let is_negative_zero = given == 0.0 && given.is_sign_negative();
        !is_negative_zero && are(&[BinaryOp::Add, BinaryOp::Sub]) || !given.is_nan() && (are(&[BinaryOp::Max]) || are(&[BinaryOp::Min]))
    }

    fn changes_nothing(&mut self, op: BinaryOp, value: Value) -> bool {
        let neutral = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor => 0.0,
            BinaryOp::Max => f64::NEG_INFINITY,
            BinaryOp::Min => f64::INFINITY,
            _ => return false,
        };
        self.positions.is_positional(value) && self.number(value) == Some(neutral)
    }

    /// The value of a tile at a masked position, if it is a constant, zero or infinite.
    fn number(&mut self, value: Value) -> Option<f64> {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        let found = self.computed(value);
        self.known.insert(value, found);
        found
    }

    fn computed(&mut self, value: Value) -> Option<f64> {
        let func = self.func;
        let constant = |value: Value| func.splat(value)?.as_number();
        // For these numbers, `f64` arithmetic gives the result of every element type.
        let is_exact = |number: &f64| *number == 0.0 || number.is_infinite();
        if !self.positions.inside[value] {
            return constant(value);
        }
        match *func.def_op(value)? {
            Op::Load { other: None, .. } => Some(0.0),
            Op::Load { other: Some(other), .. } => constant(other),
            Op::Const { .. } | Op::Broadcast { .. } => constant(value),
            Op::Cast { x } => {
                let keeps_infinity = matches!(func.ty(value).dtype(), Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64);
                self.number(x).filter(|number| *number == 0.0 || number.is_infinite() && keeps_infinity)
            }
            Op::Unary { op: UnaryOp::Neg, x } => self.number(x).filter(is_exact).map(|number| -number),
            Op::Unary { op: UnaryOp::Abs, x } => self.number(x).filter(is_exact).map(f64::abs),
            Op::Binary { op: BinaryOp::Mul, lhs, rhs } => {
                let factors = [self.number(lhs)?, self.number(rhs)?];
                factors.iter().any(is_exact).then(|| factors[0] * factors[1])
            }
            _ => None,
        }
    }
}
