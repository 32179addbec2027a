//! Elaboration of expressions.

use super::Elaborator;
use super::branch::Wants;
use super::constant::wrapped;
use super::meaning::{Constant, Kind, Meaning, shown};
use super::operator::float8_help;
use crate::ast::{Block, Expr, ExprKind, Operator, TypeName};
use crate::builtins;
use crate::depth;
use crate::signature::{dtype_of, float8_named, is_alias, of_alias};
use crate::span::SourceSpan;
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, ConstBinary, ConstExpr, ConstUnary, Domain, Elem, Op, UnaryOp};

impl Elaborator<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Meaning {
        let deeper = match &expr.kind {
            ExprKind::Call(_) | ExprKind::If(_) | ExprKind::Block(_) | ExprKind::Struct(_) | ExprKind::InlinePtx(_) => depth::BLOCK,
            _ => 1,
        };
        let meaning = self.nested(deeper, expr.span, || Meaning::Poison, |cx| cx.expr_inside(expr));
        match &meaning {
            Meaning::Constant(constant) if constant.expr.is_long() => {
                let message = format!("this constant is computed from more than {} others", ConstExpr::MOST_PARTS);
                self.errors.push_help(expr.span, message, "compute it outside of the kernel, and pass it as a constant parameter");
                Meaning::Poison
            }
            _ => meaning,
        }
    }

    fn expr_inside(&mut self, expr: &Expr) -> Meaning {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Error => Meaning::Poison,
            ExprKind::Int(value, suffix) => self.literal(ConstExpr::Int(*value), Kind::Int, suffix.as_ref(), span),
            ExprKind::Float(value, suffix) => self.literal(ConstExpr::Float(*value), Kind::Float, suffix.as_ref(), span),
            ExprKind::Bool(value) => Meaning::constant(ConstExpr::Bool(*value), Kind::Bool, None),
            ExprKind::Text(_) => {
                self.errors.push_help(span, "a text has no meaning here", "texts are values of options only: `cache = \"cg\"`");
                Meaning::Poison
            }
            ExprKind::Name(name) => self.name(name, span),
            ExprKind::Path(path) => self.path(path, span),
            ExprKind::Outer(index, _) => self.outer(*index),
            ExprKind::Neg(x) => self.negate(x, span),
            ExprKind::Not(x) => self.not(x, span),
            ExprKind::Binary(Operator::And, lhs, rhs) => self.logical(true, lhs, rhs, span),
            ExprKind::Binary(Operator::Or, lhs, rhs) => self.logical(false, lhs, rhs, span),
            ExprKind::Binary(Operator::Compare(op @ (CompareOp::Eq | CompareOp::Ne)), lhs, rhs)
                if self.is_type(lhs) || self.is_type(rhs) =>
            {
                self.same_type(*op == CompareOp::Eq, lhs, rhs)
            }
            ExprKind::Binary(operator, lhs, rhs) => {
                let (a, b) = (self.expr(lhs), self.expr(rhs));
                self.operate(*operator, (&a, lhs), (&b, rhs), span)
            }
            ExprKind::Cast(x, ty) => {
                let meaning = self.expr(x);
                match self.elem(ty) {
                    Some(elem) => self.cast(&meaning, &elem, x.span, span),
                    None => Meaning::Poison,
                }
            }
            ExprKind::CastToPointer(x, ty, mutable) => self.cast_to_pointer(x, ty, *mutable, span),
            ExprKind::Call(call) => self.call(call, span),
            ExprKind::Tuple(list) => Meaning::Tuple(None, list.iter().map(|elem| self.expr(elem)).collect()),
            ExprKind::Struct(literal) => self.struct_literal(literal, span),
            ExprKind::Shape(_) => {
                self.errors.push_help(
                    span,
                    "arrays are not available in kernels",
                    "`[N]` is only the shape in `zeros::<f32>([N])` and `full([N], value)`",
                );
                Meaning::Poison
            }
            ExprKind::Closure(..) => {
                self.errors.push_help(
                    span,
                    "a closure has no meaning here",
                    "give it a name, `let f = |a, b| ..;`, and call it; or give it to `reduce(x, axis, |a, b| ..)` or a `#[device] fn`",
                );
                Meaning::Poison
            }
            ExprKind::NewAxes(x, axes) => self.new_axes(x, axes, span),
            ExprKind::Field(x, name) => self.field(x, name, span),
            ExprKind::InlinePtx(inline) => self.inline_ptx(inline, span),
            ExprKind::If(_) | ExprKind::Block(_) => self.expr_as(expr, None),
        }
    }

    /// Elaborates an expression with an expected element type. Constants in the branches of an `if` take this type; otherwise they would take
    /// the default type of their kind.
    pub(super) fn expr_as(&mut self, expr: &Expr, elem: Option<&Elem>) -> Meaning {
        match &expr.kind {
            ExprKind::If(inner) => {
                self.nested(depth::BLOCK, expr.span, || Meaning::Poison, |cx| cx.if_else(inner, Wants::Value(elem), expr.span))
            }
            ExprKind::Block(block) => {
                self.nested(depth::BLOCK, expr.span, || Meaning::Poison, |cx| cx.scoped(|cx| cx.block_as(block, elem)))
            }
            _ => self.expr(expr),
        }
    }

    /// The value of a block, in a scope that the caller opened.
    pub(super) fn block_as(&mut self, block: &Block, elem: Option<&Elem>) -> Meaning {
        self.stmts(&block.stmts);
        let Some(value) = &block.value else { return Meaning::UNIT };
        let meaning = self.expr_as(value, elem);
        if !self.outlives_scope(&meaning) {
            let help = "it is known up to the end of the block that declares it: declare it in front of the block";
            self.errors.push_help(value.span, "a closure cannot leave its block", help);
            return Meaning::Poison;
        }
        meaning
    }

    /// Is the meaning valid after the innermost scope ends? A closure that uses variables of that scope is not.
    fn outlives_scope(&self, meaning: &Meaning) -> bool {
        match meaning {
            Meaning::Function(closure) => closure.scopes < self.scopes.len(),
            Meaning::Tuple(_, parts) => parts.iter().all(|part| self.outlives_scope(part)),
            _ => true,
        }
    }

    /// The element type for a type in the source.
    pub(super) fn elem(&mut self, ty: &TypeName) -> Option<Elem> {
        let name = ty.text.as_deref()?;
        if let Some(dtype) = dtype_of(name) {
            return Some(Elem::Dtype(dtype));
        }
        if let Some(elem) = self.type_param(name) {
            return Some(elem);
        }
        let help = match name {
            "i128" | "u128" => "the widest integers are `i64` and `u64`".to_string(),
            "char" | "str" | "String" => "kernels compute with numbers and `bool`".to_string(),
            "Ptr" | "PtrMut" => format!("name what it points to: `address as {name}<f32>`"),
            _ if let Some(float8) = float8_named(name) => format!("did you mean {float8}?"),
            _ if elsewhere(name).is_some() => format!("it is called `{}` here", elsewhere(name).unwrap_or_default()),
            _ => {
                let names = Dtype::ALL.iter().map(|dtype| dtype.name()).chain(["usize", "isize"]);
                let params = self.type_params();
                match did_you_mean(name, names.chain(params.iter().map(String::as_str))) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if is_alias(name) && self.frames.is_empty() => of_alias(name, &self.func.name),
                    None => {
                        "element types are `f16`, `bf16`, `f32`, `f64`, the integers, `bool` and the kernel's type parameters".to_string()
                    }
                }
            }
        };
        self.errors.push_help(ty.span, format!("there is no element type `{name}`"), help);
        None
    }

    /// Is it a type in the position of a value, as in `zeros([N], f32)`?
    pub(super) fn is_type(&self, expr: &Expr) -> bool {
        let ExprKind::Name(name) = &expr.kind else { return false };
        self.find(name).is_none() && (dtype_of(name).is_some() || self.type_param(name).is_some())
    }

    /// `T == f32`: a constant, which is known at once if the types are.
    fn same_type(&mut self, is_equal: bool, lhs: &Expr, rhs: &Expr) -> Meaning {
        let elem = |cx: &mut Self, expr: &Expr| match &expr.kind {
            ExprKind::Name(name) if cx.is_type(expr) => cx.elem(&TypeName { text: Some(name.clone()), span: expr.span }),
            _ => {
                cx.errors.push_help(expr.span, "a type is compared with a type", "write it like `T == f32`");
                None
            }
        };
        let (Some(a), Some(b)) = (elem(self, lhs), elem(self, rhs)) else { return Meaning::Poison };
        let (x, y) = (self.choices(&a), self.choices(&b));
        let expr = if a == b {
            ConstExpr::Bool(is_equal)
        } else if !x.iter().any(|dtype| y.contains(dtype)) {
            ConstExpr::Bool(!is_equal)
        } else {
            let param = |elem: &Elem| ConstExpr::Param(elem.to_string().as_str().into());
            ConstExpr::binary(if is_equal { ConstBinary::Eq } else { ConstBinary::Ne }, param(&a), param(&b))
        };
        Meaning::constant(expr, Kind::Bool, None)
    }

    fn literal(&mut self, expr: ConstExpr, kind: Kind, suffix: Option<&TypeName>, span: SourceSpan) -> Meaning {
        let Some(suffix) = suffix else { return Meaning::constant(expr, kind, None) };
        let Some(elem) = self.elem(suffix) else { return Meaning::Poison };
        self.typed(Constant { expr, kind, elem: None, quotients: Vec::new() }, elem, span)
    }

    /// Gives a constant a type.
    pub(super) fn typed(&mut self, constant: super::Constant, elem: Elem, span: SourceSpan) -> Meaning {
        if let Kind::Outer(index) = constant.kind {
            return self.outer_as(index, &elem, &[], span).into();
        }
        if !self.quotients_fit(&constant, &elem, span) {
            return Meaning::Poison;
        }
        match self.fit(&constant, &elem) {
            Ok(expr) => {
                self.assert_fit(&expr, &constant, &elem, span);
                let is_float = self.choices(&elem).iter().all(|dtype| dtype.is_float());
                let kind = if is_float { Kind::Float } else { constant.kind };
                Meaning::constant(expr, kind, Some(elem))
            }
            Err((message, help)) => {
                self.errors.push_help(span, message, help);
                Meaning::Poison
            }
        }
    }

    /// A parameter's value must fit its type when the kernel is specialised; otherwise it is an error, as for a literal. Values beyond 64
    /// bits never fit an index.
    fn assert_fit(&mut self, expr: &ConstExpr, constant: &super::Constant, elem: &Elem, span: SourceSpan) {
        let Some(dtype) = elem.dtype().filter(|dtype| dtype.is_int() && *dtype != Dtype::I64) else { return };
        let own = constant.elem.clone().or_else(|| self.param_elem(expr)).and_then(|elem| elem.dtype());
        let Some((low, high)) = dtype.int_range().filter(|_| !expr.is_literal() && own.is_none_or(|own| !own.widens_to(dtype))) else {
            return;
        };
        let bound = |op, end| ConstExpr::binary(op, expr.clone(), ConstExpr::Int(end));
        let cond = ConstExpr::binary(ConstBinary::And, bound(ConstBinary::Ge, low), bound(ConstBinary::Le, high));
        let message = format!("`{}` does not fit `{dtype}`, which holds {low} to {high}", shown(expr));
        self.append(Op::StaticAssert { cond, message }, span);
    }

    fn negate(&mut self, x: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        match &meaning {
            Meaning::Constant(constant) if constant.elem.is_none() && matches!(constant.kind, Kind::Int | Kind::Float) => {
                let expr = ConstExpr::unary(ConstUnary::Neg, constant.expr.clone());
                return Meaning::Constant(Constant { expr, ..constant.clone() });
            }
            Meaning::Constant(Constant { expr, elem: Some(Elem::Dtype(dtype)), .. }) if dtype.is_signed_int() => {
                let negated = wrapped(ConstExpr::unary(ConstUnary::Neg, expr.clone()), *dtype);
                return Meaning::constant(negated, Kind::Int, Some(Elem::Dtype(*dtype)));
            }
            Meaning::Constant(Constant { expr: ConstExpr::Float(value), kind, elem, .. }) if !value.is_finite() => {
                return Meaning::constant(ConstExpr::Float(-value), *kind, elem.clone());
            }
            _ => {}
        }
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        let elem = self.func.ty(value).elem().clone();
        if self.choices(&elem).iter().any(|dtype| !(Domain::Float.contains(*dtype) || dtype.is_signed_int())) {
            let found = self.describe(&meaning);
            let help = match &elem {
                Elem::Dtype(dtype) if dtype.is_float8() => float8_help(x),
                Elem::Dtype(Dtype::Bool) => "invert a `bool` with `!`".to_string(),
                Elem::Dtype(_) => "cast it to a signed type first, or write `0 - x`, which wraps".to_string(),
                Elem::Param(name) => format!("`{name}` may be unsigned; bound it by `Float`, or write `0 - x`, which wraps"),
            };
            self.errors.push_help(span, format!("cannot negate {found}"), help);
            return Meaning::Poison;
        }
        self.emit(Op::Unary { op: UnaryOp::Neg, x: value }, &[], span).into()
    }

    fn not(&mut self, x: &Expr, span: SourceSpan) -> Meaning {
        let meaning = self.expr(x);
        if let Meaning::Constant(constant) = &meaning
            && constant.kind == Kind::Bool
        {
            return Meaning::constant(ConstExpr::unary(ConstUnary::Not, constant.expr.clone()), Kind::Bool, None);
        }
        let Some(value) = self.value(&meaning, x.span) else { return Meaning::Poison };
        if !self.check_domain(value, Domain::Bits) {
            let found = self.describe(&meaning);
            self.errors.push_help(span, format!("cannot apply `!` to {found}"), "`!` inverts a `bool` and the bits of an integer");
            return Meaning::Poison;
        }
        self.emit(Op::Unary { op: UnaryOp::Not, x: value }, &[], span).into()
    }

    /// Is every possible dtype of the value in the domain?
    pub(super) fn check_domain(&self, value: kernel_lang::ir::Value, domain: Domain) -> bool {
        self.choices(self.func.ty(value).elem()).iter().all(|dtype| domain.contains(*dtype))
    }

    /// `&&` and `||`: on scalars the right side runs only if it is needed; on tiles both sides run.
    fn logical(&mut self, is_and: bool, lhs: &Expr, rhs: &Expr, span: SourceSpan) -> Meaning {
        let a = self.expr(lhs);
        let a = self.taken_as_bool(a, lhs.span);
        self.logical_with(is_and, (&a, lhs), rhs, span)
    }

    pub(super) fn logical_with(&mut self, is_and: bool, lhs: (&Meaning, &Expr), rhs: &Expr, span: SourceSpan) -> Meaning {
        let operator = Operator::Binary(if is_and { BinaryOp::And } else { BinaryOp::Or });
        let is_scalar = matches!(lhs.0, Meaning::Value(value) if self.func.ty(*value) == &kernel_lang::ir::Type::scalar(Dtype::Bool));
        if !is_scalar || !touches_memory(rhs) {
            let b = self.expr(rhs);
            let b = self.taken_as_bool(b, rhs.span);
            if !self.expect_bool(lhs.0, lhs.1.span, is_and) | !self.expect_bool(&b, rhs.span, is_and) {
                return Meaning::Poison;
            }
            return self.operate(operator, lhs, (&b, rhs), span);
        }
        // `if lhs { rhs } else { false }`.
        let known = |value: bool, span: SourceSpan| Expr { kind: ExprKind::Bool(value), span };
        let of = |value: Expr| Block { stmts: Vec::new(), span: value.span, value: Some(Box::new(value)) };
        let (then_block, else_block) =
            if is_and { (of(rhs.clone()), of(known(false, span))) } else { (of(known(true, span)), of(rhs.clone())) };
        self.branch(lhs.0, lhs.1.span, &then_block, Some(&else_block), Wants::Value(None), span)
    }

    fn expect_bool(&mut self, meaning: &Meaning, span: SourceSpan, is_and: bool) -> bool {
        let is_bool = match meaning {
            Meaning::Poison => true,
            meaning => self.elem_of(meaning) == Some(Elem::Dtype(Dtype::Bool)),
        };
        if !is_bool {
            let found = self.describe(meaning);
            let (sign, bits) = if is_and { ("&&", "&") } else { ("||", "|") };
            self.errors.push_help(
                span,
                format!("`{sign}` takes `bool`, not {found}"),
                format!("compare first (`x != 0`); bits are combined with `{bits}`"),
            );
        }
        is_bool
    }
}

/// May an expression load or change memory, so that running it unnecessarily makes a difference?
fn touches_memory(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::If(_) | ExprKind::Block(_) => true,
        // The body of a function is not analysed.
        ExprKind::Call(call) if !builtins::find(&call.name.text).is_some_and(|row| row.builtin.is_pure()) => true,
        ExprKind::InlinePtx(inline) if inline.volatile => true,
        _ => expr.operands().into_iter().any(touches_memory),
    }
}

/// The name here for an element type of another language.
fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "float" | "float32" | "single" => "f32",
        "double" | "float64" => "f64",
        "half" | "float16" => "f16",
        "bfloat16" => "bf16",
        "int" | "int32" => "i32",
        "int8" => "i8",
        "int16" | "short" => "i16",
        "int64" | "long" => "i64",
        "uint8" | "byte" => "u8",
        "uint16" => "u16",
        "uint" | "uint32" => "u32",
        "uint64" => "u64",
        "int1" | "boolean" => "bool",
        _ => return None,
    })
}
