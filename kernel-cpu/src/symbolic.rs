//! Symbolic tiles: translation of tiles that are functions of an element's index.
//!
//! For `%5 = add %4, %3` only the sum of the bases is computed, a scalar. If an op needs the elements, they are computed from the form.

use crate::code::{Affine, Condition, Instr, Linear, Slot};
use crate::forms::scalar_constant;
use crate::translate::{Symbol, Translator};
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, Op, UnaryOp, Value};
use kernel_lang::scalar::{Scalar, lanes};

impl Translator<'_> {
    /// Translates an op whose result has a form.
    pub(super) fn symbolic(&mut self, op: &Op, result: Value) {
        let symbol = self.symbol(op, result);
        self.set_symbol(result, symbol);
    }

    /// Sets the form of a value, and computes its elements if an op needs them.
    pub(super) fn set_symbol(&mut self, value: Value, symbol: Symbol) {
        if self.forms.wants_tile(value) {
            self.elements(value, &symbol);
        }
        self.symbols[value] = Some(symbol);
    }

    fn elements(&mut self, value: Value, symbol: &Symbol) {
        let extents = self.func.ty(value).extents();
        match symbol {
            Symbol::Affine(affine) if affine.coefficients.iter().all(|coefficient| *coefficient == Linear::Const(0)) => {
                let from = self.slot(affine.base);
                self.uniform(value, from);
            }
            Symbol::Affine(affine) => {
                let to = self.allocate_for(value);
                self.instrs.push(Instr::Index { to, affine: affine.clone(), extents });
            }
            Symbol::Mask(conditions) => match conditions[..] {
                [Condition::Uniform(from)] => self.uniform(value, from),
                _ => {
                    let to = self.allocate_for(value);
                    self.instrs.push(Instr::Conditions { to, conditions: conditions.clone(), extents });
                }
            },
        }
    }

    fn symbol(&mut self, op: &Op, result: Value) -> Symbol {
        let rank = self.func.ty(result).shape().len();
        let uniform = |base: Linear| Symbol::Affine(Affine { base, coefficients: vec![Linear::Const(0); rank] });
        match op {
            Op::Const { value } => uniform(Linear::Const(int(value.as_int()))),
            Op::Arange { start, .. } => {
                Symbol::Affine(Affine { base: Linear::Const(int(start.as_int())), coefficients: vec![Linear::Const(1)] })
            }
            Op::Broadcast { x } if self.func.ty(*x).is_scalar() => match self.func.ty(*x).dtype() {
                Dtype::Bool => Symbol::Mask(vec![Condition::Uniform(self.storage(*x).slot)]),
                _ => uniform(scalar_constant(self.func, *x).map_or_else(|| Linear::Slot(self.storage(*x).slot), Linear::Const)),
            },
            Op::Broadcast { x } => {
                let extents = self.func.ty(*x).extents();
                map_affine(self.symbol_of(*x), &|coefficients| {
                    for (coefficient, extent) in coefficients.iter_mut().zip(&extents) {
                        *coefficient = if *extent == 1 { Linear::Const(0) } else { *coefficient };
                    }
                })
            }
            Op::ExpandDims { x, axis } => {
                map_affine(self.symbol_of(*x), &|coefficients| coefficients.insert(*axis as usize, Linear::Const(0)))
            }
            Op::Permute { x, order } => map_affine(self.symbol_of(*x), &|coefficients| {
                *coefficients = order.iter().map(|axis| coefficients[*axis as usize]).collect();
            }),
            Op::Binary { op: BinaryOp::And, lhs, rhs } => match (self.symbol_of(*lhs), self.symbol_of(*rhs)) {
                (Symbol::Mask(mut lhs), Symbol::Mask(rhs)) => {
                    lhs.extend(rhs);
                    Symbol::Mask(lhs)
                }
                _ => unreachable!("a mask is made of masks"),
            },
            Op::Binary { op, lhs, rhs } => {
                let (lhs, rhs) = (self.affine_of(*lhs), self.affine_of(*rhs));
                Symbol::Affine(self.affine_binary(*op, lhs, rhs))
            }
            Op::Unary { op: UnaryOp::Neg, x } => {
                let x = self.affine_of(*x);
                let zero = Affine { base: Linear::Const(0), coefficients: vec![Linear::Const(0); rank] };
                Symbol::Affine(self.affine_binary(BinaryOp::Sub, zero, x))
            }
            Op::Compare { op, lhs, rhs } => {
                let (lhs, rhs) = (self.affine_of(*lhs), self.affine_of(*rhs));
                let (lhs, rhs) = if matches!(op, CompareOp::Gt | CompareOp::Ge) { (rhs, lhs) } else { (lhs, rhs) };
                Symbol::Mask(vec![Condition::Less { lhs, rhs, or_equal: matches!(op, CompareOp::Le | CompareOp::Ge) }])
            }
            other => unreachable!("`{}` has no form", other.name()),
        }
    }

    fn symbol_of(&self, value: Value) -> Symbol {
        self.symbols[value].clone().expect("a form is made of forms")
    }

    /// The form of an affine tile.
    pub(super) fn affine_of(&self, value: Value) -> Affine {
        match self.symbol_of(value) {
            Symbol::Affine(affine) => affine,
            Symbol::Mask(_) => unreachable!("an `i64` tile is no mask"),
        }
    }

    fn affine_binary(&mut self, op: BinaryOp, lhs: Affine, rhs: Affine) -> Affine {
        if op != BinaryOp::Mul {
            let base = self.linear_binary(op, lhs.base, rhs.base);
            let both = lhs.coefficients.into_iter().zip(rhs.coefficients);
            return Affine { base, coefficients: both.map(|(a, b)| self.linear_binary(op, a, b)).collect() };
        }
        let is_uniform = |affine: &Affine| affine.coefficients.iter().all(|coefficient| *coefficient == Linear::Const(0));
        let (tile, factor) = if is_uniform(&rhs) { (lhs, rhs.base) } else { (rhs, lhs.base) };
        let base = self.linear_binary(op, tile.base, factor);
        Affine { base, coefficients: tile.coefficients.into_iter().map(|a| self.linear_binary(op, a, factor)).collect() }
    }

    /// A sum, difference or product of scalars, folded if constants determine the result.
    fn linear_binary(&mut self, op: BinaryOp, a: Linear, b: Linear) -> Linear {
        match (op, a, b) {
            (BinaryOp::Add, Linear::Const(a), Linear::Const(b)) => Linear::Const(a.wrapping_add(b)),
            (BinaryOp::Sub, Linear::Const(a), Linear::Const(b)) => Linear::Const(a.wrapping_sub(b)),
            (BinaryOp::Mul, Linear::Const(a), Linear::Const(b)) => Linear::Const(a.wrapping_mul(b)),
            (BinaryOp::Add | BinaryOp::Sub, _, Linear::Const(0)) | (BinaryOp::Mul, _, Linear::Const(1)) => a,
            (BinaryOp::Add, Linear::Const(0), _) | (BinaryOp::Mul, Linear::Const(1), _) => b,
            (BinaryOp::Mul, _, Linear::Const(0)) | (BinaryOp::Mul, Linear::Const(0), _) => Linear::Const(0),
            _ => {
                let operands = [self.slot(a), self.slot(b)];
                let lanes = lanes::binary(op, Dtype::I64).expect("`i64` has every op of integers");
                Linear::Slot(self.scalar_lanes(lanes, operands))
            }
        }
    }

    /// The slot of a scalar.
    pub(super) fn slot(&mut self, linear: Linear) -> Slot {
        match linear {
            Linear::Slot(slot) => slot,
            Linear::Const(value) => self.front_constant(Scalar::from_bits(Dtype::I64, value as u64), 1),
        }
    }
}

fn int(value: Option<i128>) -> i64 {
    value.expect("a specialised kernel's constants are literals") as i64
}

/// Maps the coefficients of every affine tile in a form.
fn map_affine(symbol: Symbol, map: &dyn Fn(&mut Vec<Linear>)) -> Symbol {
    match symbol {
        Symbol::Affine(mut affine) => {
            map(&mut affine.coefficients);
            Symbol::Affine(affine)
        }
        Symbol::Mask(mut conditions) => {
            for condition in &mut conditions {
                if let Condition::Less { lhs, rhs, .. } = condition {
                    map(&mut lhs.coefficients);
                    map(&mut rhs.coefficients);
                }
            }
            Symbol::Mask(conditions)
        }
    }
}
