//! Pointer arithmetic: `x + offsets`. A pointer is a parameter and an offset in elements, and arithmetic adds up the offsets.

use super::convert::shapes_help;
use super::meaning::{Constant, Kind, Meaning};
use super::operator::Operand;
use super::{Elaborator, Value};
use crate::ast::{Expr, Operator, TypeName};
use crate::span::SourceSpan;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, Builder, ConstExpr, Elem, Op, Type, UnaryOp};

const INDEX: Elem = Elem::Dtype(Dtype::I64);

impl Elaborator<'_> {
    /// Elaborates an operator with a pointer operand; `None` if neither side is a pointer.
    pub(super) fn pointer_arithmetic(
        &mut self,
        operator: Operator,
        lhs: Operand<'_>,
        rhs: Operand<'_>,
        span: SourceSpan,
    ) -> Option<Meaning> {
        let is_add = operator == Operator::Binary(BinaryOp::Add);
        let is_sub = operator == Operator::Binary(BinaryOp::Sub);
        match (lhs.0, rhs.0) {
            (Meaning::Pointer { .. }, Meaning::Pointer { .. }) => {
                let help = "compute with the offsets, and add them to one pointer";
                self.errors.push_help(span, format!("`{}` does not combine two pointers", operator.sign()), help);
                Some(Meaning::Poison)
            }
            (Meaning::Pointer { base, offset }, _) if is_add || is_sub => Some(self.advance(*base, *offset, rhs, is_sub, span)),
            (_, Meaning::Pointer { base, offset }) if is_add => Some(self.advance(*base, *offset, lhs, false, span)),
            (pointer @ Meaning::Pointer { .. }, _) | (_, pointer @ Meaning::Pointer { .. }) => {
                let found = self.describe(pointer);
                let help = "a pointer takes offsets, `x + i` and `x - i`; its elements are read with `load(x + i)`";
                self.errors.push_help(span, format!("`{}` does not apply to {found}", operator.sign()), help);
                Some(Meaning::Poison)
            }
            _ => None,
        }
    }

    fn advance(&mut self, base: Value, offset: Option<Value>, by: Operand<'_>, backwards: bool, span: SourceSpan) -> Meaning {
        let Some(by) = self.index(by, span) else { return Meaning::Poison };
        let offset = match (offset, backwards) {
            (None, false) => Some(by),
            (None, true) => self.emit(Op::Unary { op: UnaryOp::Neg, x: by }, &[], span),
            (Some(offset), _) => {
                let both = [&Meaning::Value(offset), &Meaning::Value(by)];
                let shape = match self.common_shape(&both) {
                    Ok(shape) => shape,
                    Err((x, y)) => {
                        let (a, b) = (self.describe(both[0]), self.describe(both[1]));
                        let help = shapes_help(
                            &x,
                            &y,
                            "all offsets of a pointer need the same extent, or are scalars; of rows and columns they are `i.col() * stride + j.row()`",
                        );
                        self.errors.push_help(span, format!("the offsets {a} and {b} differ in shape"), help);
                        return Meaning::Poison;
                    }
                };
                let lhs = self.with_shape(offset, &shape, span);
                let rhs = self.with_shape(by, &shape, span);
                let op = if backwards { BinaryOp::Sub } else { BinaryOp::Add };
                match (lhs, rhs) {
                    (Some(lhs), Some(rhs)) => self.emit(Op::Binary { op, lhs, rhs }, &[], span),
                    _ => None,
                }
            }
        };
        offset.map_or(Meaning::Poison, |offset| Meaning::Pointer { base, offset: Some(offset) })
    }

    /// Converts an offset to `i64`.
    fn index(&mut self, operand: Operand<'_>, span: SourceSpan) -> Option<Value> {
        let (meaning, expr) = operand;
        let is_integer = match meaning {
            Meaning::Constant(constant) => matches!(constant.kind, Kind::Int | Kind::Outer(_)),
            Meaning::Value(value) => self.check_domain(*value, kernel_lang::ir::Domain::Int),
            _ => false,
        };
        if !is_integer {
            let found = self.describe(meaning);
            self.errors.push_help(expr.span, format!("an offset is an integer, not {found}"), "offsets count elements: `x + arange(0, N)`");
            return None;
        }
        match self.with_elem(meaning, &INDEX, expr.span) {
            Ok(value) => value,
            Err(()) => {
                let found = self.describe(meaning);
                let help = format!("cast it: `{} as usize`", super::operator::written(expr));
                self.errors.push_help(span, format!("an offset is `i64`, and {found} does not widen to it"), help);
                None
            }
        }
    }

    /// `address as Ptr<f32>`: a pointer to that address.
    pub(super) fn cast_to_pointer(&mut self, x: &Expr, elem: &TypeName, mutable: bool, span: SourceSpan) -> Meaning {
        let (meaning, elem) = (self.expr(x), self.elem(elem));
        let Some(elem) = elem.filter(|_| !meaning.is_poison()) else { return Meaning::Poison };
        let pointer = if mutable { "PtrMut" } else { "Ptr" };
        let is_address = self.elem_of(&meaning).is_some_and(|elem| matches!(elem, Elem::Dtype(Dtype::U64 | Dtype::I64)));
        if !is_address || !self.shape_of(&meaning).is_empty() {
            let found = self.describe(&meaning);
            let help = if is_address {
                "each address is a pointer of its own: take them one by one, in a loop or one a program".to_string()
            } else {
                format!("an address is what `Tensor::address` gives: `load(addresses + i) as {pointer}<{elem}>` with `addresses: Ptr<u64>`")
            };
            self.errors.push_help(x.span, format!("a pointer is made of one `u64`, not of {found}"), help);
            return Meaning::Poison;
        }
        if !self.func.unchecked {
            let help = "mark the kernel `#[kernel(unchecked)]`: it is an `unsafe fn` then, and what lies there is its caller's matter";
            self.errors.push_help(span, "nothing is known of what an address leads to, which a safe kernel cannot allow", help);
            return Meaning::Poison;
        }
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        let scalar = Type::scalar(Dtype::I64);
        let address = if self.func.ty(value) == &scalar { Some(value) } else { self.emit(Op::Bitcast { x: value }, &[scalar], span) };
        let pointer = address.and_then(|address| self.emit(Op::Pointer { address }, &[Type::Pointer { elem, mutable }], span));
        pointer.map_or(Meaning::Poison, |base| Meaning::Pointer { base, offset: None })
    }

    /// `(x + i) as u64`: the addresses of the elements.
    pub(super) fn address_of(&mut self, base: Value, offset: Option<Value>, to: Dtype, span: SourceSpan) -> Meaning {
        let elem = self.func.ty(base).elem().clone();
        let Some(dtype) = elem.dtype() else {
            let help = "take the address in a kernel for one type, or where the type is known: `load(x)` needs no address";
            self.errors.push_help(span, format!("an element `{elem}` has no one size"), help);
            return Meaning::Poison;
        };
        let loc = self.loc(span);
        let b = &mut Builder::new(&mut self.func, self.region, loc);
        let mut address = b.op(Op::Address { base }, &[]);
        if let Some(offset) = offset {
            let shape = b.func.ty(offset).shape().to_vec();
            let bytes = b.int_like(dtype.bytes() as i128, offset);
            let bytes = b.binary(BinaryOp::Mul, offset, bytes);
            address = if shape.is_empty() { address } else { b.broadcast(address, &shape) };
            address = b.binary(BinaryOp::Add, address, bytes);
        }
        Meaning::Value(if to == Dtype::I64 { address } else { b.bitcast(address, to) })
    }

    /// The offset of a pointer as a value.
    pub(super) fn offset_value(&mut self, offset: Option<Value>, span: SourceSpan) -> Option<Value> {
        match offset {
            Some(offset) => Some(offset),
            None => self.emit(Op::Const { value: ConstExpr::Int(0) }, &[Type::scalar(Dtype::I64)], span),
        }
    }

    /// Is it a constant without a type?
    pub(super) fn is_open(meaning: &Meaning) -> bool {
        matches!(meaning, Meaning::Constant(Constant { elem: None, kind: Kind::Int | Kind::Float, .. }))
    }
}
