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

/// What holds where the walk is.
#[derive(Default)]
struct Known {
    facts: Vec<Fact>,
    changed: bool,
}

#[derive(Clone, Copy)]
enum Fact {
    /// The first is true; the second is the constant `true`.
    True(Value, Value),
    /// The comparison of two scalars holds.
    Compare(CompareOp, Value, Value),
    /// An integer scalar is a multiple.
    Multiple(Value, i128),
}

fn region(func: &mut Function, region_of: Region, known: &mut Known) {
    let outside = known.facts.len();
    let mut out = Vec::new();
    for inst in func.region(region_of).insts.clone() {
        let truth = |value: Value| {
            let fact = known.facts.iter().find(|fact| matches!(fact, Fact::True(known, _) if *known == value));
            fact.map_or(value, |fact| if let Fact::True(_, truth) = fact { *truth } else { value })
        };
        if !matches!(func.inst(inst).op, Op::Assert { .. }) {
            let before = func.inst(inst).op.clone();
            func.inst_mut(inst).op.map_operands(&mut |value| truth(value));
            known.changed |= func.inst(inst).op != before;
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
    known.facts.truncate(outside);
    *func.insts_mut(region_of) = out;
}

impl Known {
    /// All that a condition says.
    fn learn(&mut self, func: &Function, cond: Value, truth: Value) {
        self.facts.push(Fact::True(cond, truth));
        match func.def_op(cond) {
            Some(Op::Binary { op: BinaryOp::And, lhs, rhs }) => {
                self.learn(func, *lhs, truth);
                self.learn(func, *rhs, truth);
            }
            Some(Op::Compare { op, lhs, rhs }) => {
                self.facts.push(Fact::Compare(*op, *lhs, *rhs));
                if let (CompareOp::Eq, Some(Op::Binary { op: BinaryOp::Rem, lhs: x, rhs: factor }), Some(0)) =
                    (op, func.def_op(*lhs), integer(func, *rhs))
                    && let Some(factor) = integer(func, *factor).filter(|factor| *factor != 0)
                {
                    self.facts.push(Fact::Multiple(*x, factor));
                }
            }
            _ => {}
        }
    }

    /// What an op gives, if that is known.
    fn decide(&self, func: &Function, inst: Inst) -> Option<ConstExpr> {
        match func.inst(inst).op {
            Op::Compare { op, lhs, rhs } if func.ty(lhs).is_scalar() => {
                let by_facts = self.facts.iter().find_map(|fact| match *fact {
                    Fact::Compare(known, a, b) if (a, b) == (lhs, rhs) => follows(known, op),
                    Fact::Compare(known, a, b) if (b, a) == (lhs, rhs) => follows(known.swapped(), op),
                    _ => None,
                });
                by_facts.or_else(|| self.by_bounds(func, op, lhs, rhs)).map(ConstExpr::Bool)
            }
            Op::Binary { op: BinaryOp::Rem, lhs, rhs } if func.ty(lhs).is_scalar() => {
                let divisor = integer(func, rhs).filter(|divisor| *divisor != 0)?;
                let is_multiple = |fact: &Fact| matches!(fact, Fact::Multiple(x, factor) if *x == lhs && factor % divisor == 0);
                self.facts.iter().any(is_multiple).then_some(ConstExpr::Int(0))
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
        let (mut low, mut high) = (i128::MIN, i128::MAX);
        for fact in &self.facts {
            let (op, bound) = match *fact {
                Fact::Compare(op, a, b) if a == x => (op, integer(func, b)),
                Fact::Compare(op, a, b) if b == x => (op.swapped(), integer(func, a)),
                _ => continue,
            };
            let Some(bound) = bound else { continue };
            match op {
                CompareOp::Eq => (low, high) = (low.max(bound), high.min(bound)),
                CompareOp::Lt => high = high.min(bound - 1),
                CompareOp::Le => high = high.min(bound),
                CompareOp::Gt => low = low.max(bound + 1),
                CompareOp::Ge => low = low.max(bound),
                CompareOp::Ne => {}
            }
        }
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
