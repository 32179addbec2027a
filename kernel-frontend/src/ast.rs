//! The language's own syntax tree of a kernel's body, created after all unsupported Rust syntax has been reported.
//!
//! The tree may still contain early exits (`return`, `break`, `continue`); [`super::structurize`] rewrites them into nested control flow.

use crate::span::SourceSpan;
use kernel_lang::ir::{BinaryOp, CompareOp};

/// A name in the source.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: SourceSpan,
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: SourceSpan,
}

/// The form of an expression.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// An expression with an error that has been reported.
    Error,
    /// `1`, `0xffu32`; the suffix is the name of a type.
    Int(i128, Option<TypeName>),
    /// `1.5`, `1e-3f32`.
    Float(f64, Option<TypeName>),
    /// `true`.
    Bool(bool),
    /// `"cg"`: only as the value of an option.
    Text(String),
    /// A variable, a constant parameter or a dtype.
    Name(String),
    /// `f32::INFINITY`: all segments.
    Path(Vec<String>),
    /// `EPS`, `2.0 * config::SCALE`: an outer constant of the kernel, by index, and as written.
    Outer(usize, String),
    /// `-x`.
    Neg(Box<Expr>),
    /// `!x`.
    Not(Box<Expr>),
    /// `a + b`.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `x as T`.
    Cast(Box<Expr>, TypeName),
    /// `address as Ptr<f32>`, `address as PtrMut<f32>`: the element type, and whether it is mutable.
    CastToPointer(Box<Expr>, TypeName, bool),
    /// `load(x, mask = m)`, `x.exp()`.
    Call(Call),
    /// `(a, b)`, `()`.
    Tuple(Vec<Expr>),
    /// `[N]`: only as a shape.
    Shape(Vec<Expr>),
    /// `|a, b| a + b`: only as an argument, or bound to a name.
    Closure(Vec<Pattern>, Box<Expr>),
    /// `x[(.., None)]`: for each axis of the result, whether it is new.
    NewAxes(Box<Expr>, Vec<bool>),
    /// `t.0`, `w.mean`.
    Field(Box<Expr>, Name),
    /// `Welford { mean, count: 0.0 }`.
    Struct(Box<StructLiteral>),
    /// `inline_ptx!("neg.f32 {y}, {x};", y: f32, x = x, cpu = |x| -x)`.
    InlinePtx(Box<InlinePtx>),
    /// `if c { a } else { b }`.
    If(Box<If>),
    /// `{ ..; x }`.
    Block(Block),
}

/// An operator between two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    /// Arithmetic and bit operations.
    Binary(BinaryOp),
    /// Comparisons.
    Compare(CompareOp),
    /// `&&`.
    And,
    /// `||`.
    Or,
}

impl Operator {
    /// The operator in source syntax.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Operator::Binary(op) => match op {
                BinaryOp::Add => "+",
                BinaryOp::Sub => "-",
                BinaryOp::Mul => "*",
                BinaryOp::Div => "/",
                BinaryOp::Rem => "%",
                BinaryOp::And => "&",
                BinaryOp::Or => "|",
                BinaryOp::Xor => "^",
                BinaryOp::Shl => "<<",
                BinaryOp::Shr => ">>",
                BinaryOp::MulHigh => "umulhi",
                BinaryOp::DivApprox => "fast_div",
                BinaryOp::Min | BinaryOp::Max | BinaryOp::CopySign => op.name(),
            },
            Operator::Compare(op) => match op {
                CompareOp::Eq => "==",
                CompareOp::Ne => "!=",
                CompareOp::Lt => "<",
                CompareOp::Le => "<=",
                CompareOp::Gt => ">",
                CompareOp::Ge => ">=",
            },
            Operator::And => "&&",
            Operator::Or => "||",
        }
    }
}

/// The name of a dtype or a type parameter, as written. `None` if an error in it has been reported.
#[derive(Clone, Debug)]
pub(crate) struct TypeName {
    pub(crate) text: Option<String>,
    pub(crate) span: SourceSpan,
}

/// A builtin or a device function applied to arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The builtin's name; for a device function its path as written, `activations::gelu`; for a struct's function its name without the
    /// struct.
    pub(crate) name: Name,
    /// The struct of a call such as `Welford::<f32>::new(..)`.
    pub(crate) owner: Option<Box<Owner>>,
    pub(crate) types: Vec<TypeName>,
    /// The generic arguments in `name::<..>(..)` of a device function.
    pub(crate) generics: Vec<Generic>,
    /// Positional arguments; the receiver of a method call is the first.
    pub(crate) args: Vec<Expr>,
    /// `mask = m`.
    pub(crate) named: Vec<(Name, Expr)>,
    pub(crate) is_method: bool,
}

/// An `inline_ptx!` expression.
#[derive(Clone, Debug)]
pub(crate) struct InlinePtx {
    pub(crate) text: String,
    /// The span of the text.
    pub(crate) span: SourceSpan,
    /// `y: f32`.
    pub(crate) results: Vec<(Name, TypeName)>,
    /// `x = load(..)`, and the variables that only the text names.
    pub(crate) operands: Vec<(Name, Expr)>,
    /// `cpu = |x| ..`: a closure.
    pub(crate) cpu: Expr,
    /// The number of elements per execution of the text.
    pub(crate) pack: u32,
    /// Ten times the PTX ISA version that it needs; 0 for any version.
    pub(crate) isa: u32,
    pub(crate) volatile: bool,
}

/// A struct as named by a path, with its generic arguments.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    /// The path as written: `stats::Welford`.
    pub(crate) path: Name,
    pub(crate) generics: Vec<Generic>,
}

/// `Welford { mean, count: 0.0, ..base }`.
#[derive(Clone, Debug)]
pub(crate) struct StructLiteral {
    pub(crate) owner: Owner,
    /// The fields in source order, which is the order of evaluation.
    pub(crate) fields: Vec<(Name, Expr)>,
    pub(crate) base: Option<Expr>,
}

/// A generic argument of a device function.
#[derive(Clone, Debug)]
pub(crate) enum Generic {
    /// A type, or a name that may turn out to be a constant.
    Type(TypeName),
    /// `64`, `{ 2 * N }`.
    Const(Expr),
}

impl Generic {
    /// A generic argument to be inferred.
    pub(crate) fn open(span: SourceSpan) -> Generic {
        Generic::Type(TypeName { text: Some("_".to_string()), span })
    }

    /// The name, if it is a single name of a type or a constant.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Generic::Type(ty) => ty.text.as_deref(),
            Generic::Const(Expr { kind: ExprKind::Name(name), .. }) => Some(name),
            Generic::Const(_) => None,
        }
    }
}

/// `if c { .. } else { .. }`.
#[derive(Clone, Debug)]
pub(crate) struct If {
    pub(crate) cond: Expr,
    pub(crate) then_block: Block,
    pub(crate) else_block: Option<Block>,
    /// The span of the keyword `if`.
    pub(crate) keyword: SourceSpan,
}

/// Statements and the value after them.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) stmts: Vec<Stmt>,
    pub(crate) value: Option<Box<Expr>>,
    pub(crate) span: SourceSpan,
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) span: SourceSpan,
}

/// The form of a statement.
#[derive(Clone, Debug)]
pub(crate) enum StmtKind {
    /// `let x: T = e;`.
    Let(Pattern, Option<TypeName>, Expr),
    /// `x = e;`, `(a, b) = e;`.
    Assign(Pattern, Expr),
    /// `x += e;`, `w.count += e;`.
    Update(Pattern, Operator, Expr),
    /// An expression whose value is dropped.
    Expr(Expr),
    /// An `if` whose branches have no value.
    If(If),
    /// `{ .. }`.
    Block(Block),
    /// `for i in a..b { .. }`.
    For(Box<For>),
    /// `while c { .. }`.
    While(While),
    /// `return`, `return x`: a value only in a device function.
    Return(Option<Expr>),
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `static_assert!(c, "..")`.
    StaticAssert(Expr, String),
    /// `device_assert!(c, "..")`.
    DeviceAssert(Expr, String),
    /// `static_print!("..", a, b)`: the text, and the values of its placeholders.
    StaticPrint(String, Vec<Expr>),
    /// `device_print!("..", a, b)`.
    DevicePrint(String, Vec<Expr>),
    /// Unreachable statements: checked, then dropped.
    Dead(Block),
}

/// `for i in a..b { .. }`.
#[derive(Clone, Debug)]
pub(crate) struct For {
    pub(crate) index: Pattern,
    pub(crate) lower: Expr,
    pub(crate) upper: Expr,
    pub(crate) step: Option<Expr>,
    pub(crate) options: LoopOptions,
    /// The span of `range` or `static_range`, if the bounds are written with it.
    pub(crate) range_span: Option<SourceSpan>,
    /// Is it `static_range`, which unrolls the body at compile time?
    pub(crate) is_static: bool,
    /// Does the loop start with the last index?
    pub(crate) is_reversed: bool,
    pub(crate) body: Block,
    /// The hidden variable that ends the loop when false, if the body may leave the loop.
    pub(crate) going: Option<String>,
}

/// The options of `range`.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopOptions {
    /// The number of iterations in flight, all but one of which only load.
    pub(crate) num_stages: Option<Expr>,
    /// The unroll factor.
    pub(crate) unroll: Option<Expr>,
}

/// `while c { .. }`.
#[derive(Clone, Debug)]
pub(crate) struct While {
    pub(crate) cond: Expr,
    pub(crate) body: Block,
    /// As in [`For`].
    pub(crate) going: Option<String>,
}

/// The target of a binding or an assignment.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// `x`, `mut x`.
    Name { name: Name, mutable: bool },
    /// `_`.
    Wild,
    /// `(a, b)`.
    Tuple(Vec<Pattern>, SourceSpan),
    /// `Welford { mean, count: n, .. }`; `is_partial` if it names only some of the fields.
    Struct { path: Name, fields: Vec<(Name, Pattern)>, is_partial: bool, span: SourceSpan },
    /// `w.mean` as the target of an assignment: the variable, and the path to a part of it.
    Field { variable: Name, fields: Vec<Name> },
    /// A pattern with an error that has been reported.
    Error,
}

/// The operands of each form of expression, in evaluation order, as shared or exclusive references.
macro_rules! operands {
    ($kind:expr, $iter:ident $(, $exclusive:tt)?) => {
        match $kind {
            ExprKind::Neg(x) | ExprKind::Not(x) | ExprKind::Cast(x, _) | ExprKind::CastToPointer(x, ..) => vec![& $($exclusive)? **x],
            ExprKind::Field(x, _) | ExprKind::NewAxes(x, _) | ExprKind::Closure(_, x) => vec![& $($exclusive)? **x],
            ExprKind::Binary(_, lhs, rhs) => vec![& $($exclusive)? **lhs, & $($exclusive)? **rhs],
            ExprKind::Call(Call { args, named, .. }) => args.$iter().chain(named.$iter().map(|(_, value)| value)).collect(),
            ExprKind::Tuple(list) | ExprKind::Shape(list) => list.$iter().collect(),
            ExprKind::InlinePtx(inline) => {
                let InlinePtx { operands, cpu, .. } = & $($exclusive)? **inline;
                operands.$iter().map(|(_, value)| value).chain([cpu]).collect()
            }
            ExprKind::Struct(literal) => {
                let StructLiteral { fields, base, .. } = & $($exclusive)? **literal;
                fields.$iter().map(|(_, value)| value).chain(base.$iter()).collect()
            }
            ExprKind::If(_) | ExprKind::Block(_) | ExprKind::Error | ExprKind::Int(..) | ExprKind::Float(..) => Vec::new(),
            ExprKind::Bool(_) | ExprKind::Text(_) | ExprKind::Name(_) | ExprKind::Path(_) | ExprKind::Outer(..) => Vec::new(),
        }
    };
}

impl Expr {
    /// The operand expressions. Those inside an `if` and a block are excluded: they open scopes, and each walk must handle these scopes
    /// itself.
    pub(crate) fn operands(&self) -> Vec<&Expr> {
        operands!(&self.kind, iter)
    }

    /// As [`Expr::operands`], with exclusive references.
    pub(crate) fn operands_mut(&mut self) -> Vec<&mut Expr> {
        operands!(&mut self.kind, iter_mut, mut)
    }
}

impl Block {
    /// A block of the given statements, without a value.
    pub(crate) fn of(stmts: Vec<Stmt>, span: SourceSpan) -> Block {
        Block { stmts, value: None, span }
    }

    /// The block's statements, with its value turned into a statement.
    pub(crate) fn into_stmts(mut self) -> Vec<Stmt> {
        if let Some(value) = self.value.take() {
            self.stmts.push(Stmt::of_expr(*value));
        }
        self.stmts
    }
}

impl Stmt {
    /// A statement that evaluates the expression and drops its value.
    pub(crate) fn of_expr(expr: Expr) -> Stmt {
        let span = expr.span;
        let kind = match expr.kind {
            ExprKind::If(inner) => StmtKind::If(inner.without_value()),
            ExprKind::Block(block) => StmtKind::Block(Block::of(block.into_stmts(), span)),
            _ => StmtKind::Expr(expr),
        };
        Stmt { kind, span }
    }
}

impl If {
    /// The same `if` with the values of its branches dropped.
    pub(crate) fn without_value(self) -> If {
        let plain = |block: Block| {
            let span = block.span;
            Block::of(block.into_stmts(), span)
        };
        If { then_block: plain(self.then_block), else_block: self.else_block.map(plain), ..self }
    }
}
