//! Assumptions: simplifies a kernel by the conditions that it assumes, for a launch that is not `.checked()`.
//!
//! ```text
//! ; before
//! ; then dce
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = const {value = 16} : i64
//!     %1 = rem %n, %0 : i64
//!     %2 = const {value = 0} : i64
//!     %3 = eq %1, %2 : bool
//!     assert %3 {message = "assumption failed", assumed = true}
//!     %4 = const {value = 8} : i64
//!     %5 = rem %n, %4 : i64
//!     store %y, %2, %5
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = const {value = 16} : i64
//!     %1 = rem %n, %0 : i64
//!     %2 = const {value = 0} : i64
//!     %3 = eq %1, %2 : bool
//!     assert %3 {message = "assumption failed", assumed = true}
//!     %4 = const {value = 0} : i64
//!     store %y, %2, %4
//!     return
//! }
//! ```
//!
//! After an assumption, and only there, the condition is `true`. Comparisons that follow from a comparison of the same two scalars, or from
//! the bounds of a scalar, are decided. The remainder of a multiple is 0.
//!
//! A false assumption makes results wrong, but no kernel unsafe: guards of accesses are added later, from the actual lengths and offsets.
//! [`super::drop_assertions`] runs afterwards.

use rustc_hash::FxHashMap;

use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{BinaryOp, CompareOp, ConstExpr, Function, Inst, Op, Region, Type, Value};
use crate::passes::cse;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let is_assumption = |inst: &Inst| matches!(func.inst(*inst).op, Op::Assert { assumed: true, .. });
    if !func.all_insts().iter().any(is_assumption) {
        return false;
    }
    // Equal expressions become one value, so that facts about one hold for all.
    let changed = cse::run(func);
    let mut known = Known::default();
    region(func, func.body, &mut known);
    changed || known.changed
}

/// The facts that hold at the current op. A query takes time that does not depend on the number of facts.
#[derive(Default)]
struct Known {
    /// Conditions that hold, each with the constant `true` that replaces it.
    predicates: FxHashMap<Value, Value>,
    /// Comparisons that hold for two scalars. The scalar that was defined first is on the left.
    compared: FxHashMap<(Value, Value), Vec<CompareOp>>,
    /// The smallest and the largest value of a scalar. The last pair is the current one.
    bounds: FxHashMap<Value, Vec<(i128, i128)>>,
    /// Numbers of which an integer scalar is a multiple.
    multiples: FxHashMap<Value, Vec<i128>>,
    /// The facts in the order in which they were learned.
    facts: Vec<Fact>,
    changed: bool,
}

/// A new entry of one of the tables.
#[derive(Clone, Copy)]
enum Fact {
    True(Value),
    Compare((Value, Value)),
    Bounds(Value),
    Multiple(Value),
}

/// The largest number of factors that are recorded for a scalar.
const MOST_FACTORS: usize = 64;

fn region(func: &mut Function, region_of: Region, known: &mut Known) {
    let outside = known.facts.len();
    let mut out = Vec::new();
    for inst in func.region(region_of).insts.clone() {
        if !matches!(func.inst(inst).op, Op::Assert { .. }) {
            let mut changed = false;
            func.inst_mut(inst).op.map_operands(&mut |value| match known.predicates.get(&value) {
                Some(predicate) => {
                    changed |= *predicate != value;
                    *predicate
                }
                None => value,
            });
            known.changed |= changed;
        }
        let mut inner = Vec::new();
        func.inst(inst).op.for_each_region(&mut |region| inner.push(region));
        inner.into_iter().for_each(|inner| region(func, inner, known));
        if let Some(value) = known.decide(func, inst) {
            func.inst_mut(inst).op = Op::Const { value };
            known.changed = true;
        }
        out.push(inst);
        if let Op::Assert { cond, assumed: true, .. } = func.inst(inst).op {
            let loc = func.inst(inst).loc;
            let predicate = func.append(region_of, Op::Const { value: ConstExpr::Bool(true) }, [Type::scalar(Dtype::Bool)], loc);
            out.push(predicate);
            known.learn(func, cond, func.result(predicate));
        }
    }
    known.forget_from(outside);
    *func.insts_mut(region_of) = out;
}

impl Known {
    /// Records all facts that a condition implies.
    fn learn(&mut self, func: &Function, cond: Value, predicate: Value) {
        let mut next = vec![cond];
        while let Some(cond) = next.pop() {
            if self.predicates.contains_key(&cond) {
                continue; // so is every fact that it implies
            }
            self.predicates.insert(cond, predicate);
            self.facts.push(Fact::True(cond));
            match func.def_op(cond) {
                Some(Op::Binary { op: BinaryOp::And, lhs, rhs }) => next.extend([*rhs, *lhs]),
                Some(Op::Compare { op, lhs, rhs }) => self.learn_comparison(func, *op, *lhs, *rhs),
                _ => {}
            }
        }
    }

    fn learn_comparison(&mut self, func: &Function, op: CompareOp, lhs: Value, rhs: Value) {
        let (pair, ordered) = in_order(op, lhs, rhs);
        self.compared.entry(pair).or_default().push(ordered);
        self.facts.push(Fact::Compare(pair));
        for (op, x, bound) in [(op, lhs, integer(func, rhs)), (op.swapped(), rhs, integer(func, lhs))] {
            let Some(bound) = bound else { continue };
            let known = self.bounds.entry(x).or_default();
            let (low, high) = known.last().copied().unwrap_or((i128::MIN, i128::MAX));
            known.push(match op {
                CompareOp::Eq => (low.max(bound), high.min(bound)),
                CompareOp::Lt => (low, high.min(bound - 1)),
                CompareOp::Le => (low, high.min(bound)),
                CompareOp::Gt => (low.max(bound + 1), high),
                CompareOp::Ge => (low.max(bound), high),
                CompareOp::Ne => (low, high),
            });
            self.facts.push(Fact::Bounds(x));
        }
        if let (CompareOp::Eq, Some(Op::Binary { op: BinaryOp::Rem, lhs: x, rhs: factor }), Some(0)) =
            (op, func.def_op(lhs), integer(func, rhs))
            && let Some(factor) = integer(func, *factor).filter(|factor| *factor != 0)
        {
            let known = self.multiples.entry(*x).or_default();
            if known.len() < MOST_FACTORS {
                known.push(factor);
                self.facts.push(Fact::Multiple(*x));
            }
        }
    }

    /// Leaves a region: forgets the facts that were learned there.
    fn forget_from(&mut self, outside: usize) {
        for fact in self.facts.drain(outside..) {
            match fact {
                Fact::True(value) => drop(self.predicates.remove(&value)),
                Fact::Compare(pair) => drop(self.compared.get_mut(&pair).and_then(Vec::pop)),
                Fact::Bounds(value) => drop(self.bounds.get_mut(&value).and_then(Vec::pop)),
                Fact::Multiple(value) => drop(self.multiples.get_mut(&value).and_then(Vec::pop)),
            }
        }
    }

    /// The value of an op, if the facts decide it.
    fn decide(&self, func: &Function, inst: Inst) -> Option<ConstExpr> {
        match func.inst(inst).op {
            Op::Compare { op, lhs, rhs } if func.ty(lhs).is_scalar() => {
                let (pair, ordered) = in_order(op, lhs, rhs);
                let known = self.compared.get(&pair).into_iter().flatten();
                let by_facts = known.into_iter().find_map(|known| follows(*known, ordered));
                by_facts.or_else(|| self.by_bounds(func, op, lhs, rhs)).map(ConstExpr::Bool)
            }
            Op::Binary { op: BinaryOp::Rem, lhs, rhs } if func.ty(lhs).is_scalar() => {
                let divisor = integer(func, rhs).filter(|divisor| *divisor != 0)?;
                self.multiples.get(&lhs)?.iter().any(|factor| factor % divisor == 0).then_some(ConstExpr::Int(0))
            }
            _ => None,
        }
    }

    /// Decides a comparison of a scalar with a number, from the scalar's bounds.
    fn by_bounds(&self, func: &Function, op: CompareOp, lhs: Value, rhs: Value) -> Option<bool> {
        let (op, x, number) = match (integer(func, lhs), integer(func, rhs)) {
            (None, Some(number)) => (op, lhs, number),
            (Some(number), None) => (op.swapped(), rhs, number),
            _ => return None,
        };
        let (low, high) = *self.bounds.get(&x)?.last()?;
        let decided = |always: bool, never: bool| if always { Some(true) } else { never.then_some(false) };
        match op {
            CompareOp::Eq => decided(low == number && high == number, number < low || high < number),
            CompareOp::Ne => decided(number < low || high < number, low == number && high == number),
            CompareOp::Lt => decided(high < number, low >= number),
            CompareOp::Le => decided(high <= number, low > number),
            CompareOp::Gt => decided(low > number, high <= number),
            CompareOp::Ge => decided(low >= number, high < number),
        }
    }
}

/// The comparison with the value on the left that was defined first.
fn in_order(op: CompareOp, lhs: Value, rhs: Value) -> ((Value, Value), CompareOp) {
    if lhs <= rhs { ((lhs, rhs), op) } else { ((rhs, lhs), op.swapped()) }
}

/// Does `asked` hold for two numbers for which `known` holds? `None` if that is undecided. If one of them is NaN, only `ne` holds.
fn follows(known: CompareOp, asked: CompareOp) -> Option<bool> {
    use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
    let (yes, no): (&[CompareOp], &[CompareOp]) = match known {
        Eq => (&[Eq, Le, Ge], &[Ne, Lt, Gt]),
        Ne => (&[Ne], &[Eq]),
        Lt => (&[Lt, Le, Ne], &[Gt, Ge, Eq]),
        Le => (&[Le], &[Gt]),
        Gt => (&[Gt, Ge, Ne], &[Lt, Le, Eq]),
        Ge => (&[Ge], &[Lt]),
    };
    if yes.contains(&asked) { Some(true) } else { no.contains(&asked).then_some(false) }
}

/// The value of an integer scalar, if it is a constant.
fn integer(func: &Function, value: Value) -> Option<i128> {
    match func.def_op(value)? {
        Op::Const { value: constant } if func.ty(value).is_scalar() => constant.as_int(),
        _ => None,
    }
}
