//! Symbolic tiles: translation of tiles that are functions of an element's index.
//!
//! For `%5 = add %4, %3` only the sum of the bases is computed, a scalar. If an op needs the elements, they are computed from the form.

use crate::affine::{self, Scalars};
use crate::code::{Affine, Condition, Instr, Linear, Slot};
use crate::translate::{Symbol, Translator};
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, Op, Value, axes};
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
        let func = self.func;
        if func.ty(result).dtype() == Dtype::I64 {
            return Symbol::Affine(affine::result(self, func, op, result).expect("a form is made of forms"));
        }
        Symbol::Mask(match op {
            Op::Broadcast { x } if func.ty(*x).is_scalar() => vec![Condition::Uniform(self.storage(*x).slot)],
            Op::Broadcast { x } | Op::ExpandDims { x, .. } => {
                let mut conditions = self.mask_of(*x);
                for condition in &mut conditions {
                    let Condition::Less { lhs, rhs, .. } = condition else { continue };
                    for Affine { coefficients, .. } in [lhs, rhs] {
                        *coefficients =
                            axes::of_result(func, op, result, coefficients, Linear::Const(0)).expect("the op changes the shape");
                    }
                }
                conditions
            }
            Op::Binary { op: BinaryOp::And, lhs, rhs } => [self.mask_of(*lhs), self.mask_of(*rhs)].concat(),
            Op::Compare { op, lhs, rhs } => {
                let (lhs, rhs) = (self.affine_of(*lhs), self.affine_of(*rhs));
                let (lhs, rhs) = if matches!(op, CompareOp::Gt | CompareOp::Ge) { (rhs, lhs) } else { (lhs, rhs) };
                vec![Condition::Less { lhs, rhs, or_equal: matches!(op, CompareOp::Le | CompareOp::Ge) }]
            }
            other => unreachable!("`{}` has no form", other.name()),
        })
    }

    fn mask_of(&self, value: Value) -> Vec<Condition> {
        match &self.symbols[value] {
            Some(Symbol::Mask(conditions)) => conditions.clone(),
            _ => unreachable!("a mask is made of masks"),
        }
    }

    /// The form of an affine tile.
    pub(super) fn affine_of(&self, value: Value) -> Affine {
        self.tile(value).expect("the tile is affine")
    }

    /// The slot of a scalar.
    pub(super) fn slot(&mut self, linear: Linear) -> Slot {
        match linear {
            Linear::Slot(slot) => slot,
            Linear::Const(value) => self.front_constant(Scalar::from_bits(Dtype::I64, value as u64), 1),
        }
    }
}

/// A scalar is a constant if possible.
impl Scalars for Translator<'_> {
    type Scalar = Linear;

    fn constant(number: i64) -> Linear {
        Linear::Const(number)
    }

    fn scalar(&self, value: Value) -> Linear {
        self.linear(value)
    }

    fn binary(&mut self, op: BinaryOp, lhs: Linear, rhs: Linear) -> Linear {
        if let Some(number) = affine::folded(op, lhs.constant(), rhs.constant()) {
            return Linear::Const(number);
        }
        match (op, lhs, rhs) {
            (BinaryOp::Add | BinaryOp::Sub, _, Linear::Const(0)) | (BinaryOp::Mul, _, Linear::Const(1)) => lhs,
            (BinaryOp::Add, Linear::Const(0), _) | (BinaryOp::Mul, Linear::Const(1), _) => rhs,
            _ => {
                let operands = [self.slot(lhs), self.slot(rhs)];
                let lanes = lanes::binary(op, Dtype::I64).expect("`i64` has every op of integers");
                Linear::Slot(self.scalar_lanes(lanes, operands))
            }
        }
    }

    fn tile(&self, value: Value) -> Option<Affine> {
        match &self.symbols[value] {
            Some(Symbol::Affine(affine)) => Some(affine.clone()),
            _ => None,
        }
    }
}
