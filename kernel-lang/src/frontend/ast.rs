//! A kernel's body as the language sees it: what is left of Rust's syntax once everything foreign has been reported.
//!
//! Control flow still leaves early here (`return`, `break`, `continue`); [`super::structure`] makes it nest.

use crate::frontend::place::Place;
use crate::ir::{BinaryOp, CompareOp};

/// A name in the source.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) place: Place,
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) place: Place,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// Something that has been reported.
    Error,
    /// `1`, `0xffu32`; the suffix is the name of a type.
    Int(i128, Option<TypeName>),
    /// `1.5`, `1e-3f32`
    Float(f64, Option<TypeName>),
    /// `true`
    Bool(bool),
    /// `"cg"`: only as the value of an option.
    Text(String),
    /// A variable, a constant parameter or a dtype.
    Name(String),
    /// `f32::INFINITY`: all segments.
    Path(Vec<String>),
    /// `-x`
    Neg(Box<Expr>),
    /// `!x`
    Not(Box<Expr>),
    /// `a + b`
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `x as T`
    Cast(Box<Expr>, TypeName),
    /// `address as Ptr<f32>`, `address as PtrMut<f32>`: the element type, and whether it is mutable
    CastToPointer(Box<Expr>, TypeName, bool),
    /// `load(x, mask = m)`, `x.exp()`
    Call(Call),
    /// `(a, b)`, `()`
    Tuple(Vec<Expr>),
    /// `[N]`: only as a shape.
    Shape(Vec<Expr>),
    /// `|a, b| a + b`: only as an argument, and as what a name is bound to.
    Closure(Vec<Pattern>, Box<Expr>),
    /// `x[(.., None)]`: for each axis of the result, whether it is new.
    NewAxes(Box<Expr>, Vec<bool>),
    /// `t.0`, `w.mean`
    Field(Box<Expr>, Name),
    /// `Welford { mean, count: 0.0 }`
    Struct(Box<StructLiteral>),
    /// `inline_ptx!("neg.f32 {y}, {x};", y: f32, x = x, cpu = |x| -x)`
    InlinePtx(Box<InlinePtx>),
    /// `if c { a } else { b }`
    If(Box<If>),
    /// `{ ..; x }`
    Block(Block),
}

/// An operator between two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    /// Arithmetic and bits.
    Binary(BinaryOp),
    /// Comparison.
    Compare(CompareOp),
    /// `&&`
    And,
    /// `||`
    Or,
}

impl Operator {
    /// As it is written.
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

/// A type as it is written: the name of a dtype or of a type parameter. `None` if it has been reported.
#[derive(Clone, Debug)]
pub(crate) struct TypeName {
    pub(crate) text: Option<String>,
    pub(crate) place: Place,
}

/// A word of the language, or a device function, applied to arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The word; a device function as it is written, with its path: `activations::gelu`; of a struct's function its name alone.
    pub(crate) word: Name,
    /// The struct of a function that is called as `Welford::<f32>::new(..)`.
    pub(crate) owner: Option<Box<Owner>>,
    pub(crate) types: Vec<TypeName>,
    /// What stands in `name::<..>(..)` of a device function.
    pub(crate) generics: Vec<Generic>,
    /// Positional arguments; of a method call the receiver is the first.
    pub(crate) args: Vec<Expr>,
    /// `mask = m`
    pub(crate) named: Vec<(Name, Expr)>,
    pub(crate) is_method: bool,
}

/// Instructions of the user's own, and what they stand for.
#[derive(Clone, Debug)]
pub(crate) struct InlinePtx {
    pub(crate) text: String,
    /// Where the text stands.
    pub(crate) place: Place,
    /// `y: f32`
    pub(crate) results: Vec<(Name, TypeName)>,
    /// `x = load(..)`, and the variables that only the text names.
    pub(crate) operands: Vec<(Name, Expr)>,
    /// `cpu = |x| ..`: a closure.
    pub(crate) cpu: Expr,
    /// How many elements one run of the text takes.
    pub(crate) pack: u32,
    /// Ten times the version of the PTX ISA that it needs; 0 if any will do.
    pub(crate) isa: u32,
    pub(crate) volatile: bool,
}

/// A struct as a path names it, and what stands in its `<..>`.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    /// As it is written: `stats::Welford`.
    pub(crate) path: Name,
    pub(crate) generics: Vec<Generic>,
}

/// `Welford { mean, count: 0.0, ..base }`
#[derive(Clone, Debug)]
pub(crate) struct StructLiteral {
    pub(crate) owner: Owner,
    /// In the order in which they are written, which is the order in which they are computed.
    pub(crate) fields: Vec<(Name, Expr)>,
    pub(crate) base: Option<Expr>,
}

/// A generic argument of a device function.
#[derive(Clone, Debug)]
pub(crate) enum Generic {
    /// A type, or a name that may turn out to be a constant's.
    Type(TypeName),
    /// `64`, `{ 2 * N }`
    Const(Expr),
}

impl Generic {
    /// What nobody has named.
    pub(crate) fn open(place: Place) -> Generic {
        Generic::Type(TypeName { text: Some("_".to_string()), place })
    }

    /// The name that it is, of a type or of a constant.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Generic::Type(ty) => ty.text.as_deref(),
            Generic::Const(Expr { kind: ExprKind::Name(name), .. }) => Some(name),
            Generic::Const(_) => None,
        }
    }
}

/// `if c { .. } else { .. }`
#[derive(Clone, Debug)]
pub(crate) struct If {
    pub(crate) cond: Expr,
    pub(crate) then_block: Block,
    pub(crate) else_block: Option<Block>,
    /// The word `if`.
    pub(crate) keyword: Place,
}

/// Statements and the value after them.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) stmts: Vec<Stmt>,
    pub(crate) value: Option<Box<Expr>>,
    pub(crate) place: Place,
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) place: Place,
}

/// What a statement is.
#[derive(Clone, Debug)]
pub(crate) enum StmtKind {
    /// `let x: T = e;`
    Let(Pattern, Option<TypeName>, Expr),
    /// `x = e;`, `(a, b) = e;`
    Assign(Pattern, Expr),
    /// `x += e;`, `w.count += e;`
    Update(Pattern, Operator, Expr),
    /// An expression whose value is dropped.
    Expr(Expr),
    /// `if` whose branches give nothing.
    If(If),
    /// `{ .. }`
    Block(Block),
    /// `for i in a..b { .. }`
    For(Box<For>),
    /// `while c { .. }`
    While(While),
    /// `return`, `return x`: a value only in a device function.
    Return(Option<Expr>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `static_assert!(c, "..")`
    StaticAssert(Expr, String),
    /// `device_assert!(c, "..")`
    DeviceAssert(Expr, String),
    /// `static_print!("..", a, b)`: the text, and the values of its places
    StaticPrint(String, Vec<Expr>),
    /// `device_print!("..", a, b)`
    DevicePrint(String, Vec<Expr>),
    /// What can never run: checked, then dropped.
    Dead(Block),
}

/// `for i in a..b { .. }`
#[derive(Clone, Debug)]
pub(crate) struct For {
    pub(crate) index: Pattern,
    pub(crate) lower: Expr,
    pub(crate) upper: Expr,
    pub(crate) step: Option<Expr>,
    pub(crate) options: LoopOptions,
    /// The word `range` or `static_range`, if the bounds are written with it.
    pub(crate) word: Option<Place>,
    /// Is it `static_range`, which repeats the body at compile time?
    pub(crate) is_static: bool,
    /// Does the last index come first?
    pub(crate) is_reversed: bool,
    pub(crate) body: Block,
    /// The variable that says whether the loop goes on, if something in it may leave it.
    pub(crate) going: Option<String>,
}

/// What `range` says of a loop besides its bounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopOptions {
    /// How many turns are under way at once, of which all but one only load.
    pub(crate) num_stages: Option<Expr>,
    /// How many turns stand behind one another in the loop's body.
    pub(crate) unroll: Option<Expr>,
}

/// `while c { .. }`
#[derive(Clone, Debug)]
pub(crate) struct While {
    pub(crate) cond: Expr,
    pub(crate) body: Block,
    /// As in [`For`].
    pub(crate) going: Option<String>,
}

/// What a value is bound or assigned to.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// `x`, `mut x`
    Name { name: Name, mutable: bool },
    /// `_`
    Wild,
    /// `(a, b)`
    Tuple(Vec<Pattern>, Place),
    /// `Welford { mean, count: n, .. }`, and whether it names only some of the fields.
    Struct { path: Name, fields: Vec<(Name, Pattern)>, is_partial: bool, place: Place },
    /// `w.mean`, which is assigned to: the variable, and the way to a part of it.
    Field { variable: Name, fields: Vec<Name> },
    /// Something that has been reported.
    Error,
}

/// THE SHAPE OF EXPRESSIONS: what each is made of, in the order in which it is computed, by shared or by exclusive references.
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
            ExprKind::Bool(_) | ExprKind::Text(_) | ExprKind::Name(_) | ExprKind::Path(_) => Vec::new(),
        }
    };
}

impl Expr {
    /// The expressions that it is made of. Those of an `if` and of a block are not among them: these open scopes, and who walks a body must say what
    /// that means.
    pub(crate) fn operands(&self) -> Vec<&Expr> {
        operands!(&self.kind, iter)
    }

    /// As [`Expr::operands`], to change them.
    pub(crate) fn operands_mut(&mut self) -> Vec<&mut Expr> {
        operands!(&mut self.kind, iter_mut, mut)
    }
}

impl Block {
    /// A block of statements that are there already.
    pub(crate) fn of(stmts: Vec<Stmt>, place: Place) -> Block {
        Block { stmts, value: None, place }
    }

    /// The block's statements where its value is not wanted.
    pub(crate) fn into_stmts(mut self) -> Vec<Stmt> {
        if let Some(value) = self.value.take() {
            self.stmts.push(Stmt::of_expr(*value));
        }
        self.stmts
    }
}

impl Stmt {
    /// An expression whose value is not wanted.
    pub(crate) fn of_expr(expr: Expr) -> Stmt {
        let place = expr.place;
        let kind = match expr.kind {
            ExprKind::If(inner) => StmtKind::If(inner.without_value()),
            ExprKind::Block(block) => StmtKind::Block(Block::of(block.into_stmts(), place)),
            _ => StmtKind::Expr(expr),
        };
        Stmt { kind, place }
    }
}

impl If {
    /// Its branches' values are not wanted.
    pub(crate) fn without_value(self) -> If {
        let plain = |block: Block| {
            let place = block.place;
            Block::of(block.into_stmts(), place)
        };
        If { then_block: plain(self.then_block), else_block: self.else_block.map(plain), ..self }
    }
}
