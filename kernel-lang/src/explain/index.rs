//! The numbers in an index: their expressions in the names of the kernel, and numbers that divide them.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::loops::{self, Loop};
use crate::analysis::polynomial::{Polynomial, Product};
use crate::ir::{BinaryOp, ConstExpr, Function, Op, Value};

use super::{Quantity, parameter};

/// The most ops that are searched for the origin of an index.
const MOST_OPS: usize = 256;

/// The longest chain of definitions that is followed for a divisor.
const DEEPEST: u32 = 8;

/// The numbers of one kernel.
pub(super) struct Numbers<'a> {
    pub(super) func: &'a Function,
    pub(super) facts: AffineFacts,
    /// The same, but products of scalars are taken apart, too.
    products: AffineFacts,
    loops: FxHashMap<Value, Loop>,
    known: &'a dyn Fn(&str) -> Option<i64>,
}

/// What an index that is not affine is computed from.
pub(super) enum Origin {
    Loaded(Option<String>),
    Divided(Vec<Value>),
    Other,
}

/// Why a sum is not a multiple of a number.
pub(super) enum Culprit {
    /// A constant is added.
    Shift(i64),
    /// It is a multiple of this number only.
    Multiple(Quantity),
    /// It depends on a value that was loaded or computed.
    Computed,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(func: &'a Function, known: &'a dyn Fn(&str) -> Option<i64>) -> Numbers<'a> {
        Numbers { func, facts: AffineFacts::new(), products: AffineFacts::through_products(), loops: loops::by_index(func), known }
    }

    /// The start of an affine index, with products of scalars taken apart.
    pub(super) fn start(&mut self, offset: Value) -> Option<Polynomial> {
        self.products.get(self.func, offset).map(|affine| affine.start.clone())
    }

    /// Is a polynomial the same in all programs, and at the beginning of all iterations up to the step of a loop?
    pub(super) fn is_of_arguments(&self, sum: &Polynomial) -> bool {
        sum.scalars().all(|value| self.func.param_index(value).is_some() || self.loops.contains_key(&value))
    }

    /// The expression of a polynomial, and its value.
    pub(super) fn quantity(&self, sum: &Polynomial) -> Quantity {
        let value = sum.terms.iter().try_fold(sum.constant, |total, (factors, coefficient)| {
            let product = factors.iter().try_fold(*coefficient, |product, factor| Some(product.wrapping_mul(self.argument(*factor)?)));
            Some(total.wrapping_add(product?))
        });
        let mut terms: Vec<String> = sum.terms.iter().map(|(factors, coefficient)| self.product(factors, *coefficient)).collect();
        if sum.constant != 0 || terms.is_empty() {
            terms.push(sum.constant.to_string());
        }
        Quantity { text: terms.join(" + ").replace("+ -", "- "), value }
    }

    fn product(&self, factors: &[Value], coefficient: i64) -> String {
        let names = factors.iter().map(|factor| self.name(*factor));
        (coefficient != 1).then(|| coefficient.to_string()).into_iter().chain(names).collect::<Vec<_>>().join(" * ")
    }

    fn name(&self, value: Value) -> String {
        if let Some(name) = parameter(self.func, value) {
            return self.written(name);
        }
        if self.loops.contains_key(&value) {
            return "the loop's index".to_owned();
        }
        match self.func.def_op(value) {
            Some(Op::ProgramId { axis }) => format!("program_id({axis})"),
            Some(Op::Load { base, .. }) => match parameter(self.func, *base) {
                Some(tensor) => format!("an element of {tensor}"),
                None => "a loaded value".to_owned(),
            },
            Some(Op::Cast { x }) => self.name(*x),
            _ => "a computed value".to_owned(),
        }
    }

    /// The name of a parameter as the user writes it: those of a view are `x.extent(1)` and `x.stride(0)`.
    fn written(&self, name: &str) -> String {
        let of_view = ["extent", "stride"].into_iter().find_map(|part| {
            let (view, axis) = name.rsplit_once(&format!("_{part}"))?;
            let is_view = self.func.params.iter().any(|param| *param.name == *view && !self.func.ty(param.value).is_scalar());
            axis.parse::<u32>().ok().filter(|_| is_view).map(|axis| format!("{view}.{part}({axis})"))
        });
        of_view.unwrap_or_else(|| name.to_owned())
    }

    fn argument(&self, value: Value) -> Option<i64> {
        parameter(self.func, value).and_then(|name| (self.known)(name))
    }

    /// The part of a sum that keeps it from being a multiple of `run`; `None` if it is one, whatever the program and the iteration are.
    pub(super) fn culprit(&mut self, sum: &Polynomial, run: i64) -> Option<Culprit> {
        if sum.constant % run != 0 {
            return Some(Culprit::Shift(sum.constant));
        }
        for (factors, coefficient) in &sum.terms {
            let multiple = factors.iter().fold(*coefficient, |product, factor| product.wrapping_mul(self.divisor(*factor, 0)));
            if multiple % run == 0 {
                continue;
            }
            let (arguments, others): (Product, Product) =
                factors.iter().copied().partition(|factor| self.func.param_index(*factor).is_some());
            let step = others.iter().find_map(|other| self.loops.get(other)?.constant_step(self.func));
            let constant = coefficient.wrapping_mul(step.unwrap_or(1));
            let is_counted = others.iter().all(|other| self.is_counter(*other));
            if arguments.is_empty() && (!is_counted || constant == 1) {
                return Some(Culprit::Computed);
            }
            let terms = if arguments.is_empty() { Vec::new() } else { vec![(arguments, constant)] };
            let constant = if terms.is_empty() { constant } else { 0 };
            return Some(Culprit::Multiple(self.quantity(&Polynomial { terms, constant })));
        }
        None
    }

    fn is_counter(&self, value: Value) -> bool {
        self.loops.contains_key(&value) || matches!(self.func.def_op(value), Some(Op::ProgramId { .. }))
    }

    /// A number that divides the value in every program and iteration: 0 if the value is 0.
    fn divisor(&mut self, value: Value, depth: u32) -> i64 {
        if let Some(argument) = self.argument(value) {
            return argument;
        }
        if depth > DEEPEST {
            return 1;
        }
        if let Some((lower, step)) = self.loops.get(&value).map(|around| (around.lower, around.step)) {
            return common(self.divisor(lower, depth + 1), self.divisor(step, depth + 1));
        }
        match self.func.def_op(value) {
            Some(Op::Const { value: ConstExpr::Int(number) }) => i64::try_from(*number).unwrap_or(1),
            Some(&Op::Cast { x }) => self.divisor(x, depth + 1),
            Some(&Op::Binary { op: BinaryOp::Mul, lhs, rhs }) => self.divisor(lhs, depth + 1).wrapping_mul(self.divisor(rhs, depth + 1)),
            Some(&Op::Binary { op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max, lhs, rhs }) => {
                common(self.divisor(lhs, depth + 1), self.divisor(rhs, depth + 1))
            }
            _ => 1,
        }
    }

    /// The origin of an index that is not affine.
    pub(super) fn origin(&self, offset: Value) -> Origin {
        let (mut next, mut seen, mut divisors) = (vec![offset], FxHashSet::default(), Vec::new());
        let mut loaded = None;
        while let Some(value) = next.pop().filter(|_| seen.len() < MOST_OPS) {
            let Some(op) = self.func.def_op(value).filter(|_| seen.insert(value)) else { continue };
            match op {
                // A loaded scalar is a part of a uniform start.
                Op::Load { base, .. } if !self.func.ty(value).is_scalar() => {
                    loaded = loaded.or_else(|| Some(parameter(self.func, *base).map(ToString::to_string)));
                }
                Op::Load { .. } => {}
                Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, lhs, rhs } if !self.func.ty(value).is_scalar() => {
                    divisors.push(*rhs);
                    next.push(*lhs);
                }
                op => op.for_each_operand(&mut |operand| next.push(operand)),
            }
        }
        match loaded {
            Some(tensor) => Origin::Loaded(tensor),
            None if divisors.is_empty() => Origin::Other,
            None => Origin::Divided(divisors),
        }
    }
}

fn common(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
