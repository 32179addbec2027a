//! The test of the checks. It computes in 32 bits what a check shows to fit in 31, because programs that the host has no answer for run it.
//!
//! ```text
//! checks: %w fits, %h fits, %w * %h fits, %w * %h + %n fits
//! %1 = cast %w : u32                          exact if the first check holds
//! %2 = mul (cast %1 : i64), (cast %h' : i64)  of two 32-bit numbers: one instruction
//! %3 = cast %2 : u32                          exact if the third check holds
//! %4 = add %3, %n' : u32                      less than 2^32: its sign bit is the last check
//! ```
//!
//! An expression comes after its operands. Of the checks that fail, consider the one of the first expression: the checks of its operands hold, so
//! these are exact, and so is the number that is checked. So the test fails. If no check fails, all numbers are exact.

use rustc_hash::FxHashSet;
use std::ops::Range;

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Type, Value};

use super::bound::{Bound, Bounds, Check, END, Node};

impl Bounds {
    /// The number of checks.
    pub fn checks(&self) -> usize {
        self.checks.len()
    }

    /// Appends ops that test these checks, if those in front of them hold. Their result is a `bool`, or `None` if nothing is to be tested.
    pub fn test(&self, checks: Range<usize>, b: &mut Builder<'_>) -> Option<Value> {
        let checked: FxHashSet<Check> = self.checks[..checks.end].iter().copied().collect();
        let nodes = self.len();
        let mut narrow = vec![false; nodes];
        for at in 0..nodes {
            narrow[at] = is_narrow(self, &checked, Bound::of(at), &narrow);
        }
        let mut writer = Writer { bounds: self, b, narrow, wide_values: vec![None; nodes], narrow_values: vec![None; nodes] };
        writer.test(&self.checks[checks])
    }
}

/// Is an expression at least 0 and less than 2^31 if all checks hold? `narrow` answers this for its operands.
fn is_narrow(bounds: &Bounds, checked: &FxHashSet<Check>, bound: Bound, narrow: &[bool]) -> bool {
    let are_narrow = |x: Bound, y: Bound| narrow[x.at()] && narrow[y.at()];
    match bounds.node(bound) {
        Node::Constant(constant) => (0..END).contains(&constant),
        Node::Binary(BinaryOp::Div | BinaryOp::Min | BinaryOp::Max, x, y) if are_narrow(x, y) => true,
        Node::Binary(BinaryOp::Sub, x, y) if are_narrow(x, y) => checked.contains(&Check::NotNegative(bound)),
        _ => checked.contains(&Check::Fits(bound)),
    }
}

struct Writer<'a, 'f, 'b> {
    bounds: &'a Bounds,
    b: &'b mut Builder<'f>,
    /// By bound: is it at least 0 and less than 2^31?
    narrow: Vec<bool>,
    /// By bound, and of narrow ones in 32 bits: the scalars that have been appended.
    wide_values: Vec<Option<Value>>,
    narrow_values: Vec<Option<Value>>,
}

impl Writer<'_, '_, '_> {
    fn test(&mut self, checks: &[Check]) -> Option<Value> {
        // The bits of the numbers that are less than 2^31 without their signs, of those that are not negative, and of those of 32 bits that are not.
        let [mut fits, mut wide, mut signs]: [Option<Value>; 3] = Default::default();
        let mut seen = FxHashSet::default();
        for check in checks.iter().filter(|check| seen.insert(**check)) {
            let (all, number) = match (*check, self.sum_or_difference(*check)) {
                (_, Some(number)) => (&mut signs, number),
                // It is one if its operands are.
                (Check::Fits(bound) | Check::NotNegative(bound), None) if self.is_of_narrow(bound) => continue,
                (Check::Fits(bound), None) => (&mut fits, self.wide(bound)),
                (Check::NotNegative(bound), None) => (&mut wide, self.wide(bound)),
            };
            *all = Some(all.map_or(number, |all| self.b.binary(BinaryOp::Or, all, number)));
        }
        let b = &mut *self.b;
        let fits = fits.map(|all| {
            let end = b.index(END.into());
            let [all, end] = [all, end].map(|value| b.bitcast(value, Dtype::U64));
            b.compare(CompareOp::Lt, all, end)
        });
        let signs = [wide, signs].map(|all| {
            let all = all?;
            let zero = b.int_like(0, all);
            Some(b.compare(CompareOp::Ge, all, zero))
        });
        fits.into_iter().chain(signs.into_iter().flatten()).reduce(|all, test| b.binary(BinaryOp::And, all, test))
    }

    /// The sum or the difference of narrow numbers, in 32 bits: it is checked by its sign.
    fn sum_or_difference(&mut self, check: Check) -> Option<Value> {
        let (op, x, y) = match check {
            Check::Fits(bound) if let Node::Binary(op @ BinaryOp::Add, x, y) = self.bounds.node(bound) => (op, x, y),
            Check::NotNegative(bound) if let Node::Binary(op @ BinaryOp::Sub, x, y) = self.bounds.node(bound) => (op, x, y),
            _ => return None,
        };
        if !self.narrow[x.at()] || !self.narrow[y.at()] {
            return None;
        }
        let [x, y] = [x, y].map(|operand| self.narrow(operand));
        let number = self.b.binary(op, x, y);
        Some(self.b.bitcast(number, Dtype::I32))
    }

    /// Is it a quotient or an end of narrow numbers, which is narrow, too?
    fn is_of_narrow(&self, bound: Bound) -> bool {
        matches!(self.bounds.node(bound), Node::Binary(BinaryOp::Div | BinaryOp::Min | BinaryOp::Max, x, y)
            if self.narrow[x.at()] && self.narrow[y.at()])
    }

    /// A narrow bound, as `u32`. Operands have smaller numbers, so the recursion is as deep as the expression.
    fn narrow(&mut self, bound: Bound) -> Value {
        if let Some(value) = self.narrow_values[bound.at()] {
            return value;
        }
        let value = match self.bounds.node(bound) {
            Node::Constant(constant) => self.b.constant(ConstExpr::Int(constant.into()), Type::scalar(Dtype::U32)),
            Node::Binary(BinaryOp::Div, x, y) if self.narrow[x.at()] && self.narrow[y.at()] => {
                // The host computes it in nearly all launches, so it needs no reciprocal.
                let [x, y] = [x, y].map(|operand| self.narrow(operand));
                self.b.binary(BinaryOp::Div, x, y)
            }
            Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max), x, y)
                if self.narrow[x.at()] && self.narrow[y.at()] =>
            {
                let [x, y] = [x, y].map(|operand| self.narrow(operand));
                self.b.binary(op, x, y)
            }
            _ => {
                let value = self.wide(bound);
                self.b.cast(value, Dtype::U32)
            }
        };
        self.narrow_values[bound.at()] = Some(value);
        value
    }

    /// A bound as `i64`, or as a float.
    fn wide(&mut self, bound: Bound) -> Value {
        if let Some(value) = self.wide_values[bound.at()] {
            return value;
        }
        let value = match self.bounds.node(bound) {
            Node::Constant(constant) => self.b.index(constant.into()),
            Node::Scalar(value) => value,
            Node::Length(base) => self.b.length(base),
            Node::Binary(op, x, y) => {
                let [x, y] = [x, y].map(|operand| self.operand(operand));
                if op == BinaryOp::Div && self.b.func.ty(x).dtype().is_int() {
                    // Both fit in 31 bits, or a check fails, or a mask holds nowhere.
                    let [x, y] = [x, y].map(|value| self.b.cast(value, Dtype::U32));
                    let quotient = self.b.binary(BinaryOp::Div, x, y);
                    self.b.cast(quotient, Dtype::I64)
                } else {
                    self.b.binary(op, x, y)
                }
            }
            Node::Float(dtype, bits) => self.b.constant(ConstExpr::Float(f64::from_bits(bits)), Type::scalar(dtype)),
            Node::Unary(op, x) => {
                let x = self.operand(x);
                self.b.unary(op, x)
            }
            Node::Cast(dtype, x) => {
                let x = self.operand(x);
                self.b.cast(x, dtype)
            }
        };
        self.wide_values[bound.at()] = Some(value);
        value
    }

    /// The operand of an expression of 64 bits.
    fn operand(&mut self, bound: Bound) -> Value {
        if !self.narrow[bound.at()] || matches!(self.bounds.node(bound), Node::Constant(_)) {
            return self.wide(bound);
        }
        let value = self.narrow(bound);
        self.b.cast(value, Dtype::I64)
    }
}
