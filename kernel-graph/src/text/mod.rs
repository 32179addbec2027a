//! The text of a graph: printed, parsed, and made a graph again.
//!
//! ```text
//! graph mlp(x: f32[batch, 64]) where batch in 1..=1024
//!   @layer.weight = parameter : f32[64]
//!   %0 = mylib::silu(x = %x) : f32[batch, 64] {
//!     %1 = alloc : f32[batch, 64]
//!     %0 = launch silu_elements<BLOCK = 1024> [cdiv(64*batch, 1024), 1, 1] (x = %x, y = %1, n = 64*batch) : f32[batch, 64]
//!   }
//!   return %0
//! ```
//!
//! A call of an opaque op is one line at both levels: `%1 = extern mylib::sort(x = %0, descending = true) : f32[batch, 64]`.
//!
//! A [`Listing`] is that text as data. A graph prints its listing, and the parser reads one, so there is one form of both. At [`Level::Ops`](crate::Level::Ops), a listing
//! lacks the lines in braces.
//!
//! | module | what it does |
//! |---|---|
//! | `listing` | a graph as a listing |
//! | `print` | a listing as text |
//! | `lexer`, `cursor`, `types`, `parse` | text as a listing |
//! | `environment` | what a text only names: kernels, constants, configurations, ops |
//! | `expand` | gives calls the lines that a text of ops lacks |
//! | `bind` | a listing as a graph: each name becomes what it stands for |
//! | `bind_extern` | the arguments of an opaque op, whose types its schema has |
//!
//! The grammar is in `docs/graphs.md`.

mod bind;
mod bind_extern;
mod cursor;
mod environment;
mod error;
mod expand;
mod lexer;
mod listing;
mod parse;
mod print;
mod types;

use std::sync::Arc;

use kernel_runtime::Dim;
use kernel_runtime::ops::parts::IntegerType;
use kernel_runtime::ops::recorder::TensorType;

pub use environment::Environment;
pub use error::TextError;

/// The text of a graph as data. [`Graph::listing`](crate::Graph::listing) makes it of a graph and [`Listing::parse`] of a text; `Display` writes the text, and
/// [`Listing::bind`] makes it a graph.
#[derive(Clone, Debug)]
pub struct Listing {
    name: String,
    inputs: Vec<Input>,
    /// The dims, with the spans of their declarations.
    dims: Vec<(Dim, Span)>,
    program: Section,
    on_cpu: OnCpu,
    /// The text that was parsed, for errors.
    source: Arc<str>,
}

/// What the CPU runs.
#[derive(Clone, Debug)]
enum OnCpu {
    /// The program.
    Same,
    /// Another one, because ops have functions of their own.
    Section(Section),
    /// Nothing, for this reason.
    Not(String),
}

/// Where a part of a text begins: a line and a column from 1 on, in characters. Zeros in a listing of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Span {
    line: usize,
    column: usize,
}

#[derive(Clone, Debug)]
struct Input {
    name: String,
    ty: TensorType,
    span: Span,
}

/// Constants, lines and results.
#[derive(Clone, Debug)]
struct Section {
    constants: Vec<ConstantLine>,
    /// A call comes before the lines that it contains.
    lines: Vec<Line>,
    outputs: Vec<Name>,
    span: Span,
}

#[derive(Clone, Debug)]
struct ConstantLine {
    name: Name,
    /// Whether the name is that of a parameter of a model.
    is_parameter: bool,
    ty: TensorType,
}

/// The name of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Name {
    kind: NameKind,
    span: Span,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum NameKind {
    /// An input or a result: `%x`, `%0`.
    Local(String),
    /// A tensor that is the same in each run: `@layer.weight`.
    Constant(String),
    /// A value whose definition no result needs, which passes have removed. Only calls name one.
    Unused,
}

#[derive(Clone, Debug)]
struct Line {
    results: Vec<Name>,
    types: Vec<TensorType>,
    operation: Operation,
    /// That of the operation.
    span: Span,
}

#[derive(Clone, Debug)]
enum Operation {
    Alloc { zeroed: bool },
    View { of: Name, offset: Dim },
    Launch(LaunchText),
    Extern(ExternText),
    Call(CallText),
}

#[derive(Clone, Debug)]
struct LaunchText {
    head: LaunchHead,
    args: Vec<(String, Argument, Span)>,
}

/// What a launch runs: `silu_elements<BLOCK = 1024> [cdiv(n, 1024), 1, 1]`.
#[derive(Clone, Debug)]
pub(crate) struct LaunchHead {
    kernel: String,
    /// Tells kernels of one name apart: the first digits of the hash of the IR.
    hash: Option<String>,
    /// Names of types and constants, and their values.
    generics: Vec<(String, String)>,
    grid: [Dim; 3],
    /// The number of configurations, 1 for a kernel without.
    configurations: usize,
}

/// A call of an opaque op.
#[derive(Clone, Debug)]
struct ExternText {
    op: String,
    args: Vec<(String, Argument, Span)>,
    /// Its floating-point operations, if the op has a formula for them.
    flops: Option<Dim>,
}

/// An argument of a launch or of an opaque op.
#[derive(Clone, Debug)]
enum Argument {
    Tensor(Name),
    /// Tensors for an opaque op.
    List(Vec<Name>),
    /// A scalar, and for an opaque op also a text, a dtype or no tensor.
    Scalar {
        text: String,
        /// The text as an expression of dims, unless it is a literal.
        dim: Option<Dim>,
        /// The type of an integer that depends on dims, if it is not the usual one of the parameter's dtype.
        ty: Option<IntegerType>,
    },
}

#[derive(Clone, Debug)]
struct CallText {
    op: String,
    args: Vec<(String, CallArgument, Span)>,
    /// Its floating-point operations, if the op has a formula for them.
    flops: Option<Dim>,
    /// The number of the following lines that the call contains. `None` at the level of ops.
    contents: Option<usize>,
}

/// An argument of an op.
#[derive(Clone, Debug)]
enum CallArgument {
    Tensor(Name),
    List(Vec<CallArgument>),
    Text(String),
}

/// The most calls around a line.
const MOST_NESTED: usize = 256;
