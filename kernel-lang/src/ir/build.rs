//! Typed construction of ops: each method appends an op whose result types follow from its type rule.

use std::borrow::Cow;

use crate::dtype::Dtype;
use crate::ir::arena::{Inst, Region, Value};
use crate::ir::constexpr::ConstExpr;
use crate::ir::few::Few;
use crate::ir::function::Function;
use crate::ir::ops::{BinaryOp, CompareOp, Op, Precision, UnaryOp};
use crate::ir::rules;
use crate::ir::types::{Elem, Type};
use crate::location::Loc;

/// Appends ops to one region of a function, all with one source position.
#[derive(Debug)]
pub struct Builder<'a> {
    /// The function.
    pub func: &'a mut Function,
    /// The region to which ops are appended.
    pub region: Region,
    /// The source position of new ops.
    pub loc: Loc,
}

impl<'a> Builder<'a> {
    /// Appends to `region`.
    pub fn new(func: &'a mut Function, region: Region, loc: Loc) -> Builder<'a> {
        Builder { func, region, loc }
    }

    /// Appends an op. Its type rule computes the result types; `given` is the result type of ops whose operands do not determine it.
    ///
    /// # Errors
    /// A violated type rule.
    pub fn try_op(&mut self, op: Op, given: &[Type]) -> Result<Inst, String> {
        let types = rules::result_types(self.func, &op, &given.iter().collect::<Few<_>>())?;
        let types = types.into_map(Cow::into_owned);
        Ok(self.func.append(self.region, op, types, self.loc))
    }

    /// Appends an op with one result.
    ///
    /// # Panics
    /// If a type rule is violated. For passes, which know their types.
    pub fn op(&mut self, op: Op, given: &[Type]) -> Value {
        match self.try_op(op, given) {
            Ok(inst) => self.func.result(inst),
            Err(message) => panic!("a pass made an ill-typed op: {message}"),
        }
    }

    /// `op(x)`.
    pub fn unary(&mut self, op: UnaryOp, x: Value) -> Value {
        self.op(Op::Unary { op, x }, &[])
    }

    /// `op(lhs, rhs)`.
    pub fn binary(&mut self, op: BinaryOp, lhs: Value, rhs: Value) -> Value {
        self.op(Op::Binary { op, lhs, rhs }, &[])
    }

    /// `op(lhs, rhs)` as `bool`.
    pub fn compare(&mut self, op: CompareOp, lhs: Value, rhs: Value) -> Value {
        self.op(Op::Compare { op, lhs, rhs }, &[])
    }

    /// A constant of that type: a scalar, or a tile of equal elements.
    pub fn constant(&mut self, value: ConstExpr, ty: Type) -> Value {
        self.op(Op::Const { value }, &[ty])
    }

    /// An integer constant of the type of `like`.
    pub fn int_like(&mut self, value: i128, like: Value) -> Value {
        let ty = self.func.ty(like).clone();
        self.constant(ConstExpr::Int(value), ty)
    }

    /// A float constant of the type of `like`.
    pub fn float_like(&mut self, value: f64, like: Value) -> Value {
        let ty = self.func.ty(like).clone();
        self.constant(ConstExpr::Float(value), ty)
    }

    /// An `i64` scalar constant.
    pub fn index(&mut self, value: i128) -> Value {
        self.constant(ConstExpr::Int(value), Type::scalar(Dtype::I64))
    }

    /// The length of a pointer's tensor in elements.
    pub fn length(&mut self, base: Value) -> Value {
        let Some(&Op::View { base: of }) = self.func.def_op(base) else { return self.op(Op::Length { base }, &[]) };
        let length = self.length(of);
        let elements = self.func.ty(base).dtype().bytes() / self.func.ty(of).dtype().bytes();
        let by = self.index(elements.trailing_zeros().into());
        self.binary(BinaryOp::Shr, length, by)
    }

    /// The address of a pointer.
    pub fn address(&mut self, base: Value) -> Value {
        let base = self.func.viewed(base);
        self.op(Op::Address { base }, &[])
    }

    /// Broadcasts `x` to a shape; returns `x` if it already has that shape.
    pub fn broadcast(&mut self, x: Value, shape: &[ConstExpr]) -> Value {
        if self.func.ty(x).shape() == shape {
            return x;
        }
        let ty = Type::tile(self.func.ty(x).elem().clone(), shape.to_vec());
        self.op(Op::Broadcast { x }, &[ty])
    }

    /// Adds an axis of extent 1 to `x` at position `axis`.
    pub fn expand_dims(&mut self, x: Value, axis: u32) -> Value {
        self.op(Op::ExpandDims { x, axis }, &[])
    }

    /// Reshapes `x`, with the elements in row-major order; returns `x` if it already has that shape.
    pub fn reshape(&mut self, x: Value, shape: &[ConstExpr]) -> Value {
        if self.func.ty(x).shape() == shape {
            return x;
        }
        let ty = Type::tile(self.func.ty(x).elem().clone(), shape.to_vec());
        self.op(Op::Reshape { x }, &[ty])
    }

    /// Permutes the axes of `x`: axis `i` of the result is axis `order[i]`.
    pub fn permute(&mut self, x: Value, order: Vec<u32>) -> Value {
        self.op(Op::Permute { x, order }, &[])
    }

    /// Reverses the elements of `x` along an axis.
    pub fn flip(&mut self, x: Value, axis: u32) -> Value {
        self.op(Op::Flip { x, axis }, &[])
    }

    /// Reduces each input along an axis. `combine` gets a builder in the region and, as scalars, the results of the earlier run and of the
    /// later run. It returns the results of both runs together.
    pub fn reduce(
        &mut self,
        inputs: Vec<Value>,
        axis: u32,
        combine: impl FnOnce(&mut Builder<'_>, &[Value], &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let combine = self.combine(&inputs, combine);
        self.several(Op::Reduce { inputs, axis, combine })
    }

    /// As [`Builder::reduce`], of every prefix; with `reverse`, of every suffix.
    pub fn scan(
        &mut self,
        inputs: Vec<Value>,
        axis: u32,
        reverse: bool,
        combine: impl FnOnce(&mut Builder<'_>, &[Value], &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let combine = self.combine(&inputs, combine);
        self.several(Op::Scan { inputs, axis, reverse, combine })
    }

    fn combine(&mut self, inputs: &[Value], combine: impl FnOnce(&mut Builder<'_>, &[Value], &[Value]) -> Vec<Value>) -> Region {
        let region = self.func.add_region();
        for value in [inputs, inputs].concat() {
            let ty = Type::scalar(self.func.ty(value).elem().clone());
            self.func.add_region_param(region, ty);
        }
        let params = self.func.region(region).params.clone();
        let (earlier, later) = params.split_at(inputs.len());
        let mut inner = Builder::new(self.func, region, self.loc);
        let values = combine(&mut inner, earlier, later);
        inner.yield_values(values);
        region
    }

    fn several(&mut self, op: Op) -> Vec<Value> {
        match self.try_op(op, &[]) {
            Ok(inst) => self.func.inst(inst).results.to_vec(),
            Err(message) => panic!("a pass made an ill-typed op: {message}"),
        }
    }

    /// `x as elem`; returns `x` if it already has that type.
    pub fn cast(&mut self, x: Value, elem: impl Into<Elem>) -> Value {
        let ty = self.func.ty(x).with_elem(elem);
        if self.func.ty(x) == &ty { x } else { self.op(Op::Cast { x }, &[ty]) }
    }

    /// Reinterprets the bits of `x` as another element type of the same width.
    pub fn bitcast(&mut self, x: Value, elem: impl Into<Elem>) -> Value {
        let ty = self.func.ty(x).with_elem(elem);
        self.op(Op::Bitcast { x }, &[ty])
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.op(Op::Fma { a, b, c }, &[])
    }

    /// `acc` and the matrix product of `a` and `b`.
    pub fn dot(&mut self, a: Value, b: Value, acc: Value, precision: Precision) -> Value {
        self.op(Op::Dot { a, b, acc, precision }, &[])
    }

    /// `on_true` where `cond` is true, else `on_false`.
    pub fn select(&mut self, cond: Value, on_true: Value, on_false: Value) -> Value {
        self.op(Op::Select { cond, on_true, on_false }, &[])
    }

    /// Ends the region with `yield`.
    pub fn yield_values(&mut self, values: Vec<Value>) {
        self.func.append(self.region, Op::Yield { values }, [], self.loc);
    }
}
