//! Index ranges: the smallest and the largest element of a tile of indices, as scalars that a kernel can compute.
//!
//! ```text
//! %3 = arange {start = 0, end = 64}          0 ..= 63
//! %4 = add (broadcast %start), %3            %start ..= %start + 63
//! %5 = rem %4, (broadcast %n)                0 ..= min(%start + 63, %n - 1)
//! %6 = div %4, (broadcast %n)                %start / %n ..= (%start + 63) / %n
//! %7 = rem %6, (broadcast %m)                0 ..= %m - 1
//! ```
//!
//! A range holds if all checks hold, which a kernel tests once: every scalar is at least 0 and less than 2^31, every divisor is
//! at least 1, and every element fits in 32 bits. So the elements can be computed in 32 bits, and no bound overflows in 64 bits.
//!
//! A mask narrows ranges (`masked.rs`), and the condition of a `select` narrows the ranges of both sides in the same way (`selects.rs`).
//!
//! A dividend that is negative by the way it is computed has no quotient: a check that fails in every launch is worth no code.
//!
//! Each range is computed once, from those of the operands, and once more for each masked access. Chains of more than 48 ops have no range.

mod bound;
mod checks;
mod floats;
mod masked;
mod selects;
#[cfg(test)]
mod tests;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::dtype::Dtype;
use crate::ir::{Access, BinaryOp, ConstExpr, Function, Inst, MOST_MOVES, Op, SideTable, UnaryOp, Value};

pub use bound::{Bound, Bounds};
use bound::{Check, END, Node};
use masked::Narrowed;

/// The most bounds that a kernel computes.
const MOST_BOUNDS: usize = 1000;
/// The longest chain of ops that is followed.
const MOST_DEPTH: u32 = 48;
/// The most ends that are compared with a new one, and the most ops of the two.
const MOST_ENDS: usize = 16;
const MOST_STEPS: u32 = 8;

/// The smallest and the largest element, or bounds of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// No element is less.
    pub low: Bound,
    /// No element is greater.
    pub high: Bound,
    /// The ends that hold only after clamping to 32 bits, because a float beyond them was cast.
    clamped: Clamped,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Clamped {
    low: bool,
    high: bool,
}

impl Range {
    fn exact(low: Bound, high: Bound) -> Range {
        Range { low, high, clamped: Clamped::default() }
    }

    fn is_exact(&self) -> bool {
        self.clamped == Clamped::default()
    }
}

/// The divisor of a tile: the same scalar or constant for every element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Divisor {
    /// A scalar.
    Scalar(Value),
    /// A positive constant.
    Constant(i64),
}

/// The ranges of one kernel.
pub struct Ranges<'a> {
    func: &'a Function,
    /// Can the tests use this scalar?
    is_usable: &'a dyn Fn(Value) -> bool,
    bounds: Bounds,
    known: FxHashMap<Value, Option<Range>>,
    /// The ends of accesses that must not be negative, each with the number of its check.
    ends: Vec<(Bound, usize)>,
    /// The number of checks that do not change any more.
    sealed: usize,
    /// By tile: the length of the longest chain of the ops that compute it.
    depths: SideTable<Value, u32>,
}

/// The ranges under one mask, if there is a mask.
type Memo<'m> = Option<&'m mut FxHashMap<Value, Option<Range>>>;

impl<'a> Ranges<'a> {
    /// No ranges yet, of the tiles that these ops compute. Bounds consist of scalars that are usable.
    pub fn new(func: &'a Function, ops: &[Inst], is_usable: &'a dyn Fn(Value) -> bool) -> Ranges<'a> {
        let mut depths: SideTable<Value, u32> = SideTable::new();
        for inst in ops {
            let mut depth = 0;
            func.inst(*inst).op.for_each_operand(&mut |operand| depth = depth.max(depths[operand]));
            func.inst(*inst).results.iter().filter(|result| func.ty(**result).is_tile()).for_each(|result| depths[*result] = depth + 1);
        }
        Ranges { func, is_usable, bounds: Bounds::default(), known: FxHashMap::default(), ends: Vec::new(), sealed: 0, depths }
    }

    /// Assumes from now on that a comparison of tiles holds for every element: ranges are those of the elements for which it holds. The checks still
    /// include that all elements of the tiles that are compared fit in 32 bits. Returns whether the assumption is used.
    pub fn assume(&mut self, mask: Value) -> bool {
        let Some(&Op::Compare { op, lhs, rhs }) = self.func.def_op(mask) else { return false };
        let (Some(left), Some(right)) = (self.of(lhs), self.of(rhs)) else { return false };
        for (value, mut own, other, op) in [(lhs, left, right, op), (rhs, right, left, op.swapped())] {
            if own.low == own.high {
                continue;
            }
            let (low, high) = self.compared(op, other);
            if let Some(low) = low {
                own.low = self.bounds.binary(BinaryOp::Max, own.low, low);
            }
            if let Some(high) = high {
                // If an element is less than an end, the end is at least 1. What follows is then known not to be negative, either.
                if self.bounds.is_not_negative(own.low) && !self.bounds.is_not_negative(high) {
                    self.bounds.require(Check::NotNegative(high));
                }
                own.high = self.bounds.binary(BinaryOp::Min, own.high, high);
            }
            self.known.insert(value, Some(own));
        }
        true
    }

    fn checks(&self) -> usize {
        self.bounds.checks.len()
    }

    /// The expressions and checks.
    pub fn into_bounds(self) -> Bounds {
        self.bounds
    }

    /// The range of a tile of indices.
    pub fn of(&mut self, value: Value) -> Option<Range> {
        self.possibly_clamped(value).filter(Range::is_exact)
    }

    /// Are there so many bounds that a test of them would cost more than it gains?
    pub fn is_long(&self) -> bool {
        self.bounds.len() > MOST_BOUNDS
    }

    /// Is a range known only for the elements clamped to 32 bits?
    pub fn is_clamped(&self, value: Value) -> bool {
        self.known.get(&value).is_some_and(|range| range.is_some_and(|range| !range.is_exact()))
    }

    fn possibly_clamped(&mut self, value: Value) -> Option<Range> {
        if let Some(range) = self.known.get(&value) {
            return *range;
        }
        // Where a bound is a constant beyond 32 bits, no check would hold.
        let range = self.computed(value, &Narrowed::default(), &mut None).filter(|range| {
            [range.low, range.high].into_iter().all(|bound| self.bounds.as_constant(bound).is_none_or(|bound| (-END..END).contains(&bound)))
        });
        if let Some(range) = range {
            self.check(range, value);
        }
        self.known.insert(value, range);
        range
    }

    /// Requires that the elements of an access where its mask holds are inside its tensor. Returns whether a test can decide that.
    /// Conjuncts in `known` hold for every element, and are not looked at.
    pub fn require_inside(&mut self, access: Access, facts: &mut AffineFacts, known: &FxHashSet<Value>) -> bool {
        let Access { base, offset, mask, .. } = access;
        let narrowed = mask.map_or_else(Narrowed::default, |mask| self.narrowed(mask, facts, known));
        let Some(range) = self.under(offset, &narrowed) else { return false };
        let length = self.bounds.number(Node::Length(base));
        let one = self.bounds.constant(1);
        let last = self.bounds.binary(BinaryOp::Sub, length, one);
        let slack = self.bounds.binary(BinaryOp::Sub, last, range.high);
        self.require_not_negative(slack);
        if !self.bounds.is_not_negative(range.low) {
            self.require_not_negative(range.low);
        }
        true
    }

    /// Requires that a bound is not negative. Of the accesses of a window, one lies behind all others: its bound implies theirs.
    fn require_not_negative(&mut self, bound: Bound) {
        let recent = self.ends.len().saturating_sub(MOST_ENDS);
        if self.ends[recent..].iter().any(|(other, _)| self.bounds.is_at_most(*other, bound, MOST_STEPS)) {
            return;
        }
        let mut replaces = false;
        for (other, at) in &mut self.ends[recent..] {
            if *at >= self.sealed && self.bounds.is_at_most(bound, *other, MOST_STEPS) {
                self.bounds.replace(*at, Check::NotNegative(bound));
                (*other, replaces) = (bound, true);
            }
        }
        let checks = self.checks();
        if !replaces {
            self.bounds.require(Check::NotNegative(bound));
        }
        if self.checks() > checks {
            self.ends.push((bound, checks));
        }
    }

    /// Keeps the checks as they are. Returns their number: later ones come behind them.
    pub fn seal(&mut self) -> usize {
        self.sealed = self.checks();
        self.sealed
    }

    /// The range of a tile where a mask holds.
    fn under(&mut self, value: Value, narrowed: &Narrowed) -> Option<Range> {
        if narrowed.is_empty() { self.of(value) } else { self.narrow(value, narrowed, &mut FxHashMap::default()).filter(Range::is_exact) }
    }

    fn narrow(&mut self, value: Value, narrowed: &Narrowed, memo: &mut FxHashMap<Value, Option<Range>>) -> Option<Range> {
        if let Some(range) = memo.get(&value) {
            return *range;
        }
        let mut range = match self.possibly_clamped(value) {
            Some(_) => self.computed(value, narrowed, &mut Some(&mut *memo)),
            whole => whole,
        };
        if let (Some(range), Some((low, high))) = (&mut range, narrowed.get(&value)) {
            if let Some(low) = low {
                range.low = self.bounds.binary(BinaryOp::Max, range.low, *low);
            }
            if let Some(high) = high {
                range.high = self.bounds.binary(BinaryOp::Min, range.high, *high);
            }
        }
        memo.insert(value, range);
        range
    }

    /// Requires that all elements fit in 32 bits.
    fn check(&mut self, Range { low, high, .. }: Range, value: Value) {
        // A quotient or a remainder is at most the dividend, which fits.
        let is_division = matches!(self.func.def_op(value), Some(Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, .. }));
        if is_division {
            return;
        }
        if self.bounds.is_not_negative(high) {
            self.bounds.require(Check::Fits(high));
        } else {
            let last = self.bounds.constant(END - 1);
            let slack = self.bounds.binary(BinaryOp::Sub, last, high);
            self.bounds.require(Check::NotNegative(slack));
        }
        if !self.bounds.is_not_negative(low) {
            let most = self.bounds.constant(END);
            let slack = self.bounds.binary(BinaryOp::Add, low, most);
            self.bounds.require(Check::NotNegative(slack));
        }
    }

    fn operand(&mut self, value: Value, narrowed: &Narrowed, memo: &mut Memo<'_>) -> Option<Range> {
        self.clamped_operand(value, narrowed, memo).filter(Range::is_exact)
    }

    fn clamped_operand(&mut self, value: Value, narrowed: &Narrowed, memo: &mut Memo<'_>) -> Option<Range> {
        match memo {
            Some(memo) => self.narrow(value, narrowed, memo),
            None => self.possibly_clamped(value),
        }
    }

    /// The range of a value, from those of its operands. The recursion is as deep as the chain of ops, which is limited.
    fn computed(&mut self, value: Value, narrowed: &Narrowed, memo: &mut Memo<'_>) -> Option<Range> {
        let func = self.func;
        let ty = func.ty(value);
        if !ty.is_tile() || ty.elem().dtype() != Some(Dtype::I64) || self.depths[value] > MOST_DEPTH {
            return None;
        }
        if let Some(constant) = func.splat(value) {
            let constant =
                constant.as_int().and_then(|constant| i64::try_from(constant).ok()).filter(|constant| (1 - END..END).contains(constant))?;
            let bound = self.bounds.constant(constant);
            return Some(Range::exact(bound, bound));
        }
        let op = func.def_op(value)?;
        // Of the code before the region, only the leaves are known.
        if self.depths[value] == 0 && !matches!(op, Op::Arange { .. } | Op::Broadcast { .. }) {
            return None;
        }
        let (low, high) = match *op {
            Op::Arange { ref start, ref end } => {
                let (start, end) = (i64::try_from(start.as_int()?).ok()?, i64::try_from(end.as_int()?).ok()?);
                (self.bounds.constant(start), self.bounds.constant(end - 1))
            }
            Op::Broadcast { x } if func.ty(x).is_scalar() => {
                let scalar = self.scalar(x)?;
                (scalar, scalar)
            }
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } => {
                return self.clamped_operand(x, narrowed, memo);
            }
            Op::Cast { x } if func.ty(x).elem().dtype().is_some_and(Dtype::is_float) => {
                let is_not_negative = is_not_negative(func, x);
                if let Some((low, high)) = self.of_cast(x, narrowed, memo) {
                    let low = if is_not_negative { self.bounds.constant(0) } else { low };
                    return Some(Range::exact(low, high));
                }
                let (low, high) = (self.bounds.constant(if is_not_negative { 0 } else { -END }), self.bounds.constant(END - 1));
                return Some(Range { low, high, clamped: Clamped { low: !is_not_negative, high: true } });
            }
            // The lower of two numbers is exact up to the lower end that is exact.
            Op::Binary { op: op @ (BinaryOp::Min | BinaryOp::Max), lhs, rhs } => {
                let (x, y) = (self.clamped_operand(lhs, narrowed, memo)?, self.clamped_operand(rhs, narrowed, memo)?);
                let (both, either) = (
                    Clamped { low: x.clamped.low && y.clamped.low, high: x.clamped.high && y.clamped.high },
                    Clamped { low: x.clamped.low || y.clamped.low, high: x.clamped.high || y.clamped.high },
                );
                let clamped = match op {
                    BinaryOp::Min => Clamped { low: either.low, high: both.high },
                    _ => Clamped { low: both.low, high: either.high },
                };
                let (low, high) = self.combined(op, x, y)?;
                return Some(Range { low, high, clamped });
            }
            Op::Unary { op: UnaryOp::Neg, x } => {
                let x = self.operand(x, narrowed, memo)?;
                let negated = self.negated(x);
                (negated.low, negated.high)
            }
            Op::Unary { op: UnaryOp::Abs, x } => {
                let (x, zero) = (self.operand(x, narrowed, memo)?, self.bounds.constant(0));
                if self.bounds.is_not_negative(x.low) {
                    (x.low, x.high)
                } else {
                    let negated = self.bounds.binary(BinaryOp::Sub, zero, x.low);
                    (zero, self.bounds.binary(BinaryOp::Max, negated, x.high))
                }
            }
            Op::Select { cond, on_true, on_false } => {
                let x = self.selected(on_true, cond, true, narrowed, memo)?;
                let y = self.selected(on_false, cond, false, narrowed, memo)?;
                (self.bounds.binary(BinaryOp::Min, x.low, y.low), self.bounds.binary(BinaryOp::Max, x.high, y.high))
            }
            Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs, rhs } => {
                let x = self.operand(lhs, narrowed, memo)?;
                let divisor = self.divisor(divisor(func, rhs)?)?;
                if !self.bounds.is_not_negative(x.low) {
                    if self.bounds.is_negative(x.low) {
                        return None;
                    }
                    self.bounds.require(Check::NotNegative(x.low));
                }
                let (zero, one) = (self.bounds.constant(0), self.bounds.constant(1));
                let (low, high) = if op == BinaryOp::Rem {
                    let last = self.bounds.binary(BinaryOp::Sub, divisor, one);
                    // The dividend may be less than the divisor. That is not worth a division.
                    let high = if self.bounds.divides(x.high) { last } else { self.bounds.binary(BinaryOp::Min, x.high, last) };
                    (zero, high)
                } else {
                    (self.bounds.binary(BinaryOp::Div, x.low, divisor), self.bounds.binary(BinaryOp::Div, x.high, divisor))
                };
                (low, high)
            }
            Op::Binary { op, lhs, rhs } => {
                let (x, y) = (self.operand(lhs, narrowed, memo)?, self.operand(rhs, narrowed, memo)?);
                self.combined(op, x, y)?
            }
            _ => return None,
        };
        Some(Range::exact(low, high))
    }

    fn negated(&mut self, x: Range) -> Range {
        let zero = self.bounds.constant(0);
        Range::exact(self.bounds.binary(BinaryOp::Sub, zero, x.high), self.bounds.binary(BinaryOp::Sub, zero, x.low))
    }

    fn combined(&mut self, op: BinaryOp, x: Range, y: Range) -> Option<(Bound, Bound)> {
        let bounds = &mut self.bounds;
        Some(match op {
            BinaryOp::Add => (bounds.binary(op, x.low, y.low), bounds.binary(op, x.high, y.high)),
            BinaryOp::Sub => (bounds.binary(op, x.low, y.high), bounds.binary(op, x.high, y.low)),
            BinaryOp::Min | BinaryOp::Max => (bounds.binary(op, x.low, y.low), bounds.binary(op, x.high, y.high)),
            BinaryOp::Mul => {
                // One factor is not negative: then its extremes decide how far the other one is stretched.
                let (x, y) = if bounds.is_not_negative(y.low) { (x, y) } else { (y, x) };
                if !bounds.is_not_negative(y.low) {
                    return None;
                }
                let low = if bounds.is_not_negative(x.low) {
                    bounds.binary(op, x.low, y.low)
                } else {
                    let (least, most) = (bounds.binary(op, x.low, y.low), bounds.binary(op, x.low, y.high));
                    bounds.binary(BinaryOp::Min, least, most)
                };
                let high = if bounds.is_not_negative(x.high) {
                    bounds.binary(op, x.high, y.high)
                } else {
                    let (least, most) = (bounds.binary(op, x.high, y.low), bounds.binary(op, x.high, y.high));
                    bounds.binary(BinaryOp::Max, least, most)
                };
                (low, high)
            }
            _ => return None,
        })
    }

    /// A scalar, as a bound. It must fit in 31 bits.
    fn scalar(&mut self, value: Value) -> Option<Bound> {
        let ty = self.func.ty(value);
        if ty.elem().dtype() != Some(Dtype::I64) || !(self.is_usable)(value) {
            return None;
        }
        if let Some(Op::Const { value }) = self.func.def_op(value) {
            let constant =
                value.as_int().and_then(|constant| i64::try_from(constant).ok()).filter(|constant| (1 - END..END).contains(constant))?;
            return Some(self.bounds.constant(constant));
        }
        let bound = self.bounds.number(Node::Scalar(value));
        self.bounds.require(Check::Fits(bound));
        Some(bound)
    }

    /// A divisor, as a bound. It must be at least 1.
    fn divisor(&mut self, divisor: Divisor) -> Option<Bound> {
        match divisor {
            Divisor::Constant(constant) => Some(self.bounds.constant(constant)),
            Divisor::Scalar(value) => {
                let bound = self.scalar(value)?;
                let one = self.bounds.constant(1);
                let rest = self.bounds.binary(BinaryOp::Sub, bound, one);
                self.bounds.require(Check::NotNegative(rest));
                Some(bound)
            }
        }
    }
}

/// The scalar or the constant, less than 2^31, that every element of a divisor equals.
pub fn divisor(func: &Function, value: Value) -> Option<Divisor> {
    if let Some(constant) = func.splat(value) {
        let constant = constant.as_int().filter(|constant| (1..i128::from(END)).contains(constant));
        return constant.and_then(|constant| i64::try_from(constant).ok()).map(Divisor::Constant);
    }
    let mut at = value;
    // At most as many ops as `splat` follows.
    for _ in 0..MOST_MOVES {
        match *func.def_op(at)? {
            Op::Broadcast { x } if func.ty(x).is_scalar() => return Some(Divisor::Scalar(x)),
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } => at = x,
            _ => return None,
        }
    }
    None
}

/// Is a float at least 0 by the op that computes it, such as `max(x, 0.0)`?
fn is_not_negative(func: &Function, mut x: Value) -> bool {
    let is_number = |side: Value| matches!(func.splat(side), Some(ConstExpr::Float(number)) if *number >= 0.0);
    for _ in 0..MOST_MOVES {
        match func.def_op(x) {
            Some(Op::Binary { op: BinaryOp::Max, lhs, rhs }) => return is_number(*lhs) || is_number(*rhs),
            Some(Op::Binary { op: BinaryOp::Min, lhs, rhs }) => {
                x = match (is_number(*lhs), is_number(*rhs)) {
                    (true, _) => *rhs,
                    (_, true) => *lhs,
                    _ => return false,
                };
            }
            Some(Op::Unary { op: UnaryOp::Abs, .. }) => return true,
            Some(Op::Unary { op: UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Rint | UnaryOp::Round | UnaryOp::Trunc, x: of }) => x = *of,
            _ => return false,
        }
    }
    false
}
