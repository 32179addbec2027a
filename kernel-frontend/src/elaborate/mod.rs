//! Elaboration: checks a kernel's body and builds its generic IR in one walk.
//!
//! Every expression gets a [`Meaning`]. An error is reported once and becomes [`Meaning::Poison`], which every later step accepts silently.
//! One walk therefore finds all errors, and no error is a consequence of another.

mod arguments;
mod assign;
mod atomic;
mod branch;
mod call;
mod cast;
mod closure;
mod constant;
mod convert;
mod device_body;
mod dot;
mod expression;
mod generics;
mod inline;
mod inline_ptx;
mod join;
mod join_split;
mod lookup;
mod loops;
mod meaning;
mod memory;
mod modifier;
mod operator;
mod outer;
mod pointer;
mod printing;
mod quotient;
mod reduction;
mod scope;
mod shape;
mod static_loop;
mod structs;
mod view;

use std::collections::HashMap;
use std::rc::Rc;

use proc_macro2::Span;

use crate::ast::{Block, Stmt, StmtKind};
use crate::attributes::Attributes;
use crate::depth;
use crate::device::{DeviceFn, Devices};
use crate::parse::Outer;
use crate::signature::Signature;
use crate::span::{Errors, SourceSpan, Spans};
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{self, Builder, ConstParam, Elem, Function, Op, Region, Stage, Type, TypeParam, Value};

use branch::Wants;
pub(crate) use constant::is_math_constant;
pub(crate) use device_body::check as check_function;
use inline::Frame;
use meaning::{Constant, Kind, Meaning};
use outer::OuterState;
use scope::{Origin, Variable};

/// A kernel's IR and its source spans.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// The generic IR; verified if there were no errors.
    pub(crate) func: Function,
    /// The spans of the positions in the IR.
    pub(crate) spans: Spans,
    /// The builtins in the body, for editors.
    pub(crate) builtins: Vec<(&'static str, Span)>,
    /// For each outer constant, the type that the kernel takes it for; `None` if it has no use.
    pub(crate) outers: Vec<Option<Dtype>>,
}

/// Elaborates a body with nested control flow.
pub(crate) fn run(
    signature: &Signature,
    body: &Block,
    outers: &[Outer],
    devices: &Devices,
    attributes: &Attributes,
    file: &str,
    errors: &mut Errors,
) -> Lowered {
    let mut cx = Elaborator::new(declared(signature, attributes, file), devices, errors);
    cx.kernel(signature, body, outers);
    if cx.func.nesting() > ir::MAX_NESTING && cx.errors.is_empty() {
        let (message, help) = depth::message();
        cx.errors.push_help(signature.name.span, message, help);
    }
    if cx.errors.is_empty()
        && let Err(violations) = ir::verify(&cx.func, Stage::Generic)
    {
        for violation in violations {
            let span = cx.spans.get(violation.loc).unwrap_or(signature.name.span);
            let message = format!("the compiler made a broken kernel here: `{}` {}", violation.op, violation.message);
            cx.errors.push_help(span, message, "this is a defect of the compiler; please report it with the kernel");
        }
    }
    let outers = cx.outers.iter().map(|outer| outer.dtype).collect();
    Lowered { func: cx.func, spans: cx.spans, builtins: cx.builtins, outers }
}

/// Reports the errors of a kernel that do not depend on the device functions and structs that it names: each value that involves one of these
/// is unknown. Only rustc can tell whether such a name exists, and then the kernel may not be elaborated at all.
pub(crate) fn check_kernel(signature: &Signature, body: &Block, outers: &[Outer], attributes: &Attributes, errors: &mut Errors) {
    let devices = Devices::default();
    let mut cx = Elaborator::new(declared(signature, attributes, ""), &devices, errors);
    cx.is_alone = true;
    cx.kernel(signature, body, outers);
}

/// A function with the generics of the signature, without parameters and ops.
fn declared(signature: &Signature, attributes: &Attributes, file: &str) -> Function {
    let mut func = Function::new(signature.name.text.as_str());
    func.files.push(file.into());
    func.unchecked = attributes.unchecked;
    func.contract = attributes.contract;
    func.requires = attributes.requires.clone();
    for generic in &signature.types {
        func.types.push(TypeParam { name: generic.name.text.as_str().into(), choices: generic.choices.to_vec() });
    }
    for generic in &signature.consts {
        func.consts.push(ConstParam { name: generic.name.text.as_str().into(), dtype: generic.dtype });
    }
    func
}

struct Elaborator<'a> {
    func: Function,
    /// The region to which ops are appended.
    region: Region,
    errors: &'a mut Errors,
    spans: Spans,
    builtins: Vec<(&'static str, Span)>,
    variables: Vec<Variable>,
    /// The variables of each open block, by index.
    scopes: Vec<Vec<usize>>,
    devices: &'a Devices,
    outers: Vec<OuterState>,
    /// Library functions that have been looked up, by family and name.
    library: HashMap<(&'static str, String), Option<Rc<DeviceFn>>>,
    /// The number of `device_print!` so far.
    prints: u32,
    /// The names of the indices of static loops, without duplicates.
    indices: Vec<String>,
    /// The functions whose bodies are being elaborated, the innermost last; empty in the kernel itself.
    frames: Vec<Frame>,
    /// The number of open branches that a constant decides: their code may not be a part of the specialised kernel.
    static_branches: usize,
    /// The depth of the walk, in the units of [`depth`].
    open: usize,
    /// The number of function calls so far.
    calls: usize,
    /// Is this a check without the device functions and structs that the body names, which are then unknown?
    is_alone: bool,
}

impl<'a> Elaborator<'a> {
    fn new(func: Function, devices: &'a Devices, errors: &'a mut Errors) -> Elaborator<'a> {
        Elaborator {
            region: func.body,
            func,
            errors,
            spans: Spans::default(),
            builtins: Vec::new(),
            prints: 0,
            variables: Vec::new(),
            scopes: vec![Vec::new()],
            devices,
            outers: Vec::new(),
            library: HashMap::new(),
            indices: Vec::new(),
            frames: Vec::new(),
            static_branches: 0,
            open: 0,
            calls: 0,
            is_alone: false,
        }
    }
}

impl Elaborator<'_> {
    /// Elaborates a kernel: declares the parameters, then walks the body.
    fn kernel(&mut self, signature: &Signature, body: &Block, outers: &[Outer]) {
        for param in &signature.params {
            let meaning = match &param.ty {
                None => Meaning::Poison,
                Some(ty)
                    if signature
                        .types
                        .iter()
                        .any(|generic| generic.is_broken && *ty.elem() == Elem::Param(generic.name.text.as_str().into())) =>
                {
                    Meaning::Poison
                }
                Some(ty) => {
                    let value = self.func.add_param(param.name.text.as_str(), ty.clone());
                    match param.view {
                        Some(rank) => self.view_param(signature, &param.name.text, value, rank),
                        None if ty.is_pointer() => Meaning::Pointer { base: value, offset: None },
                        None => Meaning::Value(value),
                    }
                }
            };
            self.declare(Variable {
                name: param.name.text.clone(),
                meaning,
                mutable: param.mutable,
                origin: Origin::Parameter,
                argument: None,
            });
        }
        self.declare_outers(outers, signature);
        self.scoped(|cx| cx.stmts(&body.stmts));
        self.append(Op::Return {}, SourceSpan { start: body.span.end, end: body.span.end });
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.nested(depth::BLOCK, stmt.span, || (), |cx| cx.stmt_inside(stmt));
    }

    /// Runs `inside` at a greater depth, unless the limit is exceeded. Calls of functions add depth too.
    fn nested<R>(&mut self, deeper: usize, span: SourceSpan, none: impl FnOnce() -> R, inside: impl FnOnce(&mut Self) -> R) -> R {
        if self.open + deeper > depth::MOST {
            let (message, help) = depth::message();
            self.errors.push_help(span, message, help);
            return none();
        }
        self.open += deeper;
        let result = inside(self);
        self.open -= deeper;
        result
    }

    fn stmt_inside(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let(pattern, ty, value) => self.bind(pattern, ty.as_ref(), value),
            StmtKind::Assign(pattern, value) => {
                let elem = self.elem_of_target(pattern);
                let meaning = self.expr_as(value, elem.as_ref());
                self.assign(pattern, meaning, value.span);
            }
            StmtKind::Update(target, operator, value) => self.update(target, *operator, value, stmt.span),
            StmtKind::Expr(expr) => {
                self.expr(expr);
            }
            StmtKind::If(inner) => {
                self.if_else(inner, Wants::Nothing, stmt.span);
            }
            StmtKind::Block(block) => self.scoped(|cx| cx.stmts(&block.stmts)),
            StmtKind::For(inner) => self.for_loop(inner, stmt.span),
            StmtKind::While(inner) => self.while_loop(inner, stmt.span),
            StmtKind::StaticAssert(cond, message) => self.static_assert(cond, message),
            StmtKind::DeviceAssert(cond, message) => self.device_assert(cond, message),
            StmtKind::StaticPrint(text, values) => self.static_print(text, values, stmt.span),
            StmtKind::DevicePrint(text, values) => self.device_print(text, values, stmt.span),
            StmtKind::Dead(block) => self.dead(block),
            // `structurize` has removed these statements; outside a loop it has reported them.
            StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue => {}
        }
    }

    /// Checks unreachable code, and drops it.
    fn dead(&mut self, block: &Block) {
        let (region, before) = (self.region, self.meanings());
        self.region = self.func.add_region();
        self.scoped(|cx| cx.stmts(&block.stmts));
        self.region = region;
        self.restore(&before);
    }

    fn static_assert(&mut self, cond: &crate::ast::Expr, message: &str) {
        let meaning = self.expr(cond);
        if self.outer_help(&meaning).is_some() {
            let message = "the condition of `static_assert!` names a constant outside of the kernel, which the macro does not see";
            return self.errors.push_help(cond.span, message, "let rustc test it, outside of the kernel: `const _: () = assert!(..);`");
        }
        match meaning {
            Meaning::Poison => {}
            Meaning::Constant(Constant { expr: ir::ConstExpr::Bool(false), .. }) if self.static_branches == 0 => {
                self.errors.push_help(cond.span, message, "the condition is false whatever the constants are");
            }
            Meaning::Value(_) => self.errors.push_help(
                cond.span,
                "the condition of `static_assert!` must be constant, but this is computed at run time",
                "compare constant parameters: `static_assert!(BLOCK_SIZE >= 64, \"..\")`",
            ),
            Meaning::Constant(Constant { expr, kind: Kind::Bool, .. }) => {
                self.append(Op::StaticAssert { cond: expr, message: message.to_string() }, cond.span);
            }
            other => {
                let found = self.describe(&other);
                self.errors.push_help(
                    cond.span,
                    format!("`static_assert!` needs a constant `bool`, not {found}"),
                    "compare constant parameters: `static_assert!(BLOCK_SIZE >= 64, \"..\")`",
                );
            }
        }
    }

    /// The position of an op; its span is recorded for errors that are found in the IR.
    fn loc(&mut self, span: SourceSpan) -> kernel_lang::location::Loc {
        self.spans.add(self.errors.seen(span))
    }

    fn device_assert(&mut self, cond: &crate::ast::Expr, message: &str) {
        if let Some(cond_value) = self.condition("device_assert!", "compare: `device_assert!(x >= 0, \"..\")`", cond) {
            self.append(Op::Assert { cond: cond_value, message: message.to_string(), assumed: false }, cond.span);
        }
    }

    fn assume(&mut self, cond: &crate::ast::Expr, span: SourceSpan) -> Meaning {
        match self.condition("assume", "compare: `assume(n > 0)`", cond) {
            Some(cond) => {
                self.append(Op::Assert { cond, message: "assumption failed".to_string(), assumed: true }, span);
                Meaning::UNIT
            }
            None => Meaning::Poison,
        }
    }

    /// A condition as a scalar: for a tile, all elements must be true.
    fn condition(&mut self, keyword: &str, help: &str, cond: &crate::ast::Expr) -> Option<Value> {
        let meaning = self.expr(cond);
        let meaning = self.taken_as_bool(meaning, cond.span);
        if meaning.is_poison() {
            return None;
        }
        if self.elem_of(&meaning) != Some(Elem::Dtype(Dtype::Bool)) {
            let found = self.describe(&meaning);
            self.errors.push_help(cond.span, format!("`{keyword}` takes `bool`, not {found}"), help);
            return None;
        }
        let holds = self.value(&meaning, cond.span)?;
        Some(if self.func.ty(holds).is_tile() { self.all_hold(holds, cond.span) } else { holds })
    }

    /// Appends an op with one result; reports a violated type rule.
    fn emit(&mut self, op: Op, given: &[Type], span: SourceSpan) -> Option<Value> {
        let loc = self.loc(span);
        match Builder::new(&mut self.func, self.region, loc).try_op(op, given) {
            Ok(inst) => Some(self.func.result(inst)),
            Err(message) => {
                self.errors.push(span, message);
                None
            }
        }
    }

    /// Appends an op without results.
    fn append(&mut self, op: Op, span: SourceSpan) {
        let loc = self.loc(span);
        self.func.append(self.region, op, [], loc);
    }

    /// The element type of that name, if it is a type parameter.
    fn type_param(&self, name: &str) -> Option<Elem> {
        match self.frames.last() {
            Some(frame) => frame.types.iter().find(|(known, _)| known == name).map(|(_, elem)| elem.clone()),
            None => self.func.types.iter().find(|param| *param.name == *name).map(|param| Elem::Param(param.name.clone())),
        }
    }

    /// The names of the visible type parameters.
    fn type_params(&self) -> Vec<String> {
        match self.frames.last() {
            Some(frame) => frame.types.iter().map(|(name, _)| name.clone()).collect(),
            None => self.func.types.iter().map(|param| param.name.to_string()).collect(),
        }
    }

    /// The dtypes that a type parameter's bound allows; a dtype allows only itself.
    fn choices(&self, elem: &Elem) -> Vec<kernel_lang::dtype::Dtype> {
        match elem {
            Elem::Dtype(dtype) => vec![*dtype],
            Elem::Param(name) => {
                self.func.types.iter().find(|param| param.name == *name).map_or_else(Vec::new, |param| param.choices.clone())
            }
        }
    }
}
