//! For a launch that is not `.checked()`: takes for granted what the kernel assumes.
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
//! Behind an assumption, and only there, the condition is `true`; so are comparisons that follow from one of the same two scalars or from the
//! bounds of a scalar, and the remainder of a multiple is 0. What is wrongly assumed makes results wrong, but no kernel unsafe: the guards of
//! accesses are made later, from lengths and offsets as they are. [`super::drop_assertions`] comes behind.

use std::collections::HashMap;

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
    // Equal expressions become one value, about which something is known.
    let changed = cse::run(func);
    let mut known = Known::default();
    region(func, func.body, &mut known);
    changed || known.changed
}

/// What holds where the walk is. Each question takes a time that does not depend on how much is known.
#[derive(Default)]
struct Known {
    /// What is true, with the constant `true`.
    truths: HashMap<Value, Value>,
    /// What holds of two scalars, the one that was made first as the left side.
    compared: HashMap<(Value, Value), Vec<CompareOp>>,
    /// The least and the greatest number that a scalar can be: the last pair counts.
    bounds: HashMap<Value, Vec<(i128, i128)>>,
    /// Numbers of which an integer scalar is a multiple.
    multiples: HashMap<Value, Vec<i128>>,
    /// What was learned, in order.
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

/// A scalar that is known to be a multiple of more numbers is no longer listened to.
const MOST_FACTORS: usize = 64;

fn region(func: &mut Function, region_of: Region, known: &mut Known) {
    let outside = known.facts.len();
    let mut out = Vec::new();
    for inst in func.region(region_of).insts.clone() {
        if !matches!(func.inst(inst).op, Op::Assert { .. }) {
            let mut changed = false;
            func.inst_mut(inst).op.map_operands(&mut |value| match known.truths.get(&value) {
                Some(truth) => {
                    changed |= *truth != value;
                    *truth
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
            let truth = func.append(region_of, Op::Const { value: ConstExpr::Bool(true) }, [Type::scalar(Dtype::Bool)], loc);
            out.push(truth);
            known.learn(func, cond, func.result(truth));
        }
    }
    known.forget_from(outside);
    *func.insts_mut(region_of) = out;
}

impl Known {
    /// All that a condition says.
    fn learn(&mut self, func: &Function, cond: Value, truth: Value) {
        let mut next = vec![cond];
        while let Some(cond) = next.pop() {
            if self.truths.contains_key(&cond) {
                continue; // and so is all that it says
            }
            self.truths.insert(cond, truth);
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

    /// Leaves a region: what was learned there does not hold behind it.
    fn forget_from(&mut self, outside: usize) {
        for fact in self.facts.drain(outside..) {
            match fact {
                Fact::True(value) => drop(self.truths.remove(&value)),
                Fact::Compare(pair) => drop(self.compared.get_mut(&pair).and_then(Vec::pop)),
                Fact::Bounds(value) => drop(self.bounds.get_mut(&value).and_then(Vec::pop)),
                Fact::Multiple(value) => drop(self.multiples.get_mut(&value).and_then(Vec::pop)),
            }
        }
    }

    /// What an op gives, if that is known.
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

    /// A scalar beside a number, from other numbers that it has been beside.
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

/// A comparison with the value first that was made first.
fn in_order(op: CompareOp, lhs: Value, rhs: Value) -> ((Value, Value), CompareOp) {
    if lhs <= rhs { ((lhs, rhs), op) } else { ((rhs, lhs), op.swapped()) }
}

/// Does `asked` hold of two numbers of which `known` holds? A NaN among them makes only `ne` hold.
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

/// The number that an integer scalar is.
fn integer(func: &Function, value: Value) -> Option<i128> {
    match func.def_op(value)? {
        Op::Const { value: constant } if func.ty(value).is_scalar() => constant.as_int(),
        _ => None,
    }
}
