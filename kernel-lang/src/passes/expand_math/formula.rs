//! Formula builder: short methods that write a formula as IR. Each method appends one primitive in front of the op that is expanded.
//!
//! Signed zeros and NaN are part of the formulas. Two idioms must survive later passes:
//! * `fma(a, b, 0.0)` is not `a * b`: it turns a product of -0 into +0, which keeps the sign of zero in the ops that follow;
//! * `eq(x, x)` is false for NaN.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Type, UnaryOp, Value};

/// The region in which a formula is written, and the float type of the formula.
pub(super) struct Formula<'a> {
    build: Builder<'a>,
    ty: Type,
}

impl<'a> Formula<'a> {
    pub(super) fn new(build: Builder<'a>, ty: Type) -> Formula<'a> {
        Formula { build, ty }
    }

    /// `f32` or `f64`.
    pub(super) fn dtype(&self) -> Dtype {
        self.ty.dtype()
    }

    /// A float constant.
    pub(super) fn k(&mut self, value: f64) -> Value {
        self.build.constant(ConstExpr::Float(value), self.ty.clone())
    }

    /// An integer constant of the type of `like`.
    pub(super) fn int(&mut self, value: i128, like: Value) -> Value {
        self.build.int_like(value, like)
    }

    pub(super) fn unary(&mut self, op: UnaryOp, x: Value) -> Value {
        self.build.unary(op, x)
    }

    pub(super) fn binary(&mut self, op: BinaryOp, lhs: Value, rhs: Value) -> Value {
        self.build.binary(op, lhs, rhs)
    }

    pub(super) fn abs(&mut self, x: Value) -> Value {
        self.unary(UnaryOp::Abs, x)
    }

    pub(super) fn neg(&mut self, x: Value) -> Value {
        self.unary(UnaryOp::Neg, x)
    }

    pub(super) fn add(&mut self, lhs: Value, rhs: Value) -> Value {
        self.binary(BinaryOp::Add, lhs, rhs)
    }

    pub(super) fn sub(&mut self, lhs: Value, rhs: Value) -> Value {
        self.binary(BinaryOp::Sub, lhs, rhs)
    }

    pub(super) fn mul(&mut self, lhs: Value, rhs: Value) -> Value {
        self.binary(BinaryOp::Mul, lhs, rhs)
    }

    pub(super) fn div(&mut self, lhs: Value, rhs: Value) -> Value {
        self.binary(BinaryOp::Div, lhs, rhs)
    }

    pub(super) fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.build.fma(a, b, c)
    }

    /// `x + c`
    pub(super) fn add_k(&mut self, x: Value, c: f64) -> Value {
        let c = self.k(c);
        self.add(x, c)
    }

    /// `x * c`
    pub(super) fn mul_k(&mut self, x: Value, c: f64) -> Value {
        let c = self.k(c);
        self.mul(x, c)
    }

    /// `a * k + c`
    pub(super) fn fma_k(&mut self, a: Value, k: f64, c: Value) -> Value {
        let k = self.k(k);
        self.fma(a, k, c)
    }

    /// `a * b + k`
    pub(super) fn fma_plus(&mut self, a: Value, b: Value, k: f64) -> Value {
        let k = self.k(k);
        self.fma(a, b, k)
    }

    /// `op(x, k)` as `bool`, for a float `x`
    pub(super) fn compare_k(&mut self, op: CompareOp, x: Value, k: f64) -> Value {
        let k = self.k(k);
        self.compare(op, x, k)
    }

    pub(super) fn compare(&mut self, op: CompareOp, lhs: Value, rhs: Value) -> Value {
        self.build.compare(op, lhs, rhs)
    }

    pub(super) fn select(&mut self, cond: Value, on_true: Value, on_false: Value) -> Value {
        self.build.select(cond, on_true, on_false)
    }

    pub(super) fn cast(&mut self, x: Value, to: Dtype) -> Value {
        self.build.cast(x, to)
    }

    pub(super) fn bitcast(&mut self, x: Value, to: Dtype) -> Value {
        self.build.bitcast(x, to)
    }

    pub(super) fn reduce_pio2(&mut self, x: Value) -> (Value, Value) {
        let inst = self.build.try_op(crate::ir::Op::ReducePio2 { x }, &[]).expect("only `f32` angles are reduced so");
        let results = &self.build.func.inst(inst).results;
        (results[0], results[1])
    }

    /// The bits as the unsigned integer of the same width.
    pub(super) fn bits(&mut self, x: Value) -> Value {
        let to = if self.dtype() == Dtype::F64 { Dtype::U64 } else { Dtype::U32 };
        self.bitcast(x, to)
    }

    /// The float that has those bits.
    pub(super) fn float(&mut self, bits: Value) -> Value {
        let to = self.dtype();
        self.bitcast(bits, to)
    }

    /// `op(x, k)` of integers.
    pub(super) fn int_op(&mut self, op: BinaryOp, x: Value, k: i128) -> Value {
        let k = self.int(k, x);
        self.binary(op, x, k)
    }

    /// `c[0] + c[1] x + c[2] x^2 + ..` by Horner's rule: one fma for each coefficient after the highest.
    pub(super) fn polynomial(&mut self, x: Value, coefficients: &[f64]) -> Value {
        let (highest, rest) = coefficients.split_last().expect("a polynomial has a coefficient");
        let mut sum = self.k(*highest);
        for coefficient in rest.iter().rev() {
            sum = self.fma_plus(sum, x, *coefficient);
        }
        sum
    }

    /// `magnitude`, which is not negative, with the sign of `sign`. This takes two logical instructions, or one on hardware with three
    /// operands.
    pub(super) fn with_sign_of(&mut self, magnitude: Value, sign: Value) -> Value {
        let sign_bit = 1i128 << (self.dtype().bits() - 1);
        let bits = self.bits(sign);
        let sign = self.int_op(BinaryOp::And, bits, sign_bit);
        let magnitude = self.bits(magnitude);
        let bits = self.binary(BinaryOp::Or, magnitude, sign);
        self.float(bits)
    }
}
