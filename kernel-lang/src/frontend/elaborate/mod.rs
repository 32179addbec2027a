//! Checks a kernel's body and builds its generic IR in one walk.
//!
//! Every expression becomes a [`Meaning`]. What is wrong is reported once and becomes [`Meaning::Poison`], which every later
//! step accepts in silence, so that one walk finds all mistakes and none is an echo of another.

mod alone;
mod arguments;
mod assign;
mod atomic;
mod branch;
mod call;
mod cast;
mod closure;
mod constant;
mod convert;
mod expression;
mod generics;
mod inline;
mod inline_ptx;
mod join;
mod lookup;
mod loops;
mod meaning;
mod memory;
mod modifier;
mod operator;
mod pieces;
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

use crate::dtype::Dtype;
use crate::frontend::ast::{Block, Stmt, StmtKind};
use crate::frontend::attributes::Attributes;
use crate::frontend::depth;
use crate::frontend::device::{DeviceFn, Devices};
use crate::frontend::place::{Errors, Place, Places};
use crate::frontend::signature::Signature;
use crate::ir::{self, Builder, ConstParam, Elem, Function, Op, Region, Stage, Type, TypeParam, Value};

pub(crate) use alone::check as check_function;
use branch::Wants;
use inline::Frame;
use meaning::{Constant, Kind, Meaning};
use scope::{Origin, Variable};

/// A kernel's IR and where it came from.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// The generic IR; verified if there were no errors.
    pub(crate) func: Function,
    /// The tokens behind the places in it.
    #[cfg_attr(not(feature = "codegen"), expect(dead_code, reason = "only compiling finds mistakes in the IR"))]
    pub(crate) places: Places,
    /// The words that the body uses, for editors.
    pub(crate) words: Vec<(&'static str, Span)>,
}

/// Elaborates a structured body.
pub(crate) fn run(
    signature: &Signature,
    body: &Block,
    devices: &Devices,
    attributes: &Attributes,
    file: &str,
    errors: &mut Errors,
) -> Lowered {
    let mut func = Function::new(signature.name.text.as_str());
    func.files.push(file.into());
    func.unchecked = attributes.unchecked;
    func.contract = attributes.contract;
    for generic in &signature.types {
        func.types.push(TypeParam { name: generic.name.text.as_str().into(), choices: generic.choices.to_vec() });
    }
    for generic in &signature.consts {
        func.consts.push(ConstParam { name: generic.name.text.as_str().into(), dtype: generic.dtype });
    }
    let mut cx = Elaborator::new(func, devices, errors);
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
                let value = cx.func.add_param(param.name.text.as_str(), ty.clone());
                match param.view {
                    Some(rank) => cx.view_param(signature, &param.name.text, value, rank),
                    None if ty.is_pointer() => Meaning::Pointer { base: value, offset: None },
                    None => Meaning::Value(value),
                }
            }
        };
        cx.declare(Variable { name: param.name.text.clone(), meaning, mutable: param.mutable, origin: Origin::Parameter, argument: None });
    }
    cx.scoped(|cx| cx.stmts(&body.stmts));
    cx.append(Op::Return {}, Place { start: body.place.end, end: body.place.end });
    if cx.func.nesting() > ir::MAX_NESTING && cx.errors.is_empty() {
        let (message, help) = depth::message();
        cx.errors.push_help(signature.name.place, message, help);
    }
    if cx.errors.is_empty()
        && let Err(violations) = ir::verify(&cx.func, Stage::Generic)
    {
        for violation in violations {
            let place = cx.places.get(violation.loc).unwrap_or(signature.name.place);
            let message = format!("the compiler made a broken kernel here: `{}` {}", violation.op, violation.message);
            cx.errors.push_help(place, message, "this is a defect of the compiler; please report it with the kernel");
        }
    }
    Lowered { func: cx.func, places: cx.places, words: cx.words }
}

struct Elaborator<'a> {
    func: Function,
    /// Where ops go.
    region: Region,
    errors: &'a mut Errors,
    places: Places,
    words: Vec<(&'static str, Span)>,
    variables: Vec<Variable>,
    /// The variables of each open block, by their index.
    scopes: Vec<Vec<usize>>,
    devices: &'a Devices,
    /// What the library has under a name that was used, by its family.
    library: HashMap<(&'static str, String), Option<Rc<DeviceFn>>>,
    /// How many `device_print!` there are so far.
    prints: u32,
    /// The names of the indices of static loops, each once.
    indices: Vec<String>,
    /// The functions whose bodies are being elaborated, the innermost last; none in the kernel itself.
    frames: Vec<Frame>,
    /// How many branches are open that a constant decides: what stands there need not be a part of the kernel.
    static_branches: usize,
    /// How deep the walk is, as [`depth`] counts.
    open: usize,
    /// How many functions have been called so far.
    calls: usize,
    /// Is this a device function by itself? What its callees and its structs are is unknown then.
    is_alone: bool,
}

impl<'a> Elaborator<'a> {
    fn new(func: Function, devices: &'a Devices, errors: &'a mut Errors) -> Elaborator<'a> {
        Elaborator {
            region: func.body,
            func,
            errors,
            places: Places::default(),
            words: Vec::new(),
            prints: 0,
            variables: Vec::new(),
            scopes: vec![Vec::new()],
            devices,
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
    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.nested(depth::BLOCK, stmt.place, || (), |cx| cx.stmt_inside(stmt));
    }

    /// Does something that is so much deeper, unless that is too deep: also functions that call functions are.
    fn nested<R>(&mut self, deeper: usize, place: Place, none: impl FnOnce() -> R, inside: impl FnOnce(&mut Self) -> R) -> R {
        if self.open + deeper > depth::MOST {
            let (message, help) = depth::message();
            self.errors.push_help(place, message, help);
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
                self.assign(pattern, meaning, value.place);
            }
            StmtKind::Update(target, operator, value) => self.update(target, *operator, value, stmt.place),
            StmtKind::Expr(expr) => {
                self.expr(expr);
            }
            StmtKind::If(inner) => {
                self.if_else(inner, Wants::Nothing, stmt.place);
            }
            StmtKind::Block(block) => self.scoped(|cx| cx.stmts(&block.stmts)),
            StmtKind::For(inner) => self.for_loop(inner, stmt.place),
            StmtKind::While(inner) => self.while_loop(inner, stmt.place),
            StmtKind::StaticAssert(cond, message) => self.static_assert(cond, message),
            StmtKind::DeviceAssert(cond, message) => self.device_assert(cond, message),
            StmtKind::StaticPrint(text, values) => self.static_print(text, values, stmt.place),
            StmtKind::DevicePrint(text, values) => self.device_print(text, values, stmt.place),
            StmtKind::Dead(block) => self.dead(block),
            // `structure` has taken them out; outside of a loop they are reported there.
            StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue => {}
        }
    }

    /// Checks what never runs, and forgets it.
    fn dead(&mut self, block: &Block) {
        let (region, before) = (self.region, self.meanings());
        self.region = self.func.add_region();
        self.scoped(|cx| cx.stmts(&block.stmts));
        self.region = region;
        self.restore(&before);
    }

    fn static_assert(&mut self, cond: &crate::frontend::ast::Expr, message: &str) {
        match self.expr(cond) {
            Meaning::Poison => {}
            Meaning::Constant(Constant { expr: ir::ConstExpr::Bool(false), .. }) if self.static_branches == 0 => {
                self.errors.push_help(cond.place, message, "the condition is false whatever the constants are");
            }
            Meaning::Value(_) => self.errors.push_help(
                cond.place,
                "the condition of `static_assert!` must be constant, but this is computed at run time",
                "compare constant parameters: `static_assert!(BLOCK_SIZE >= 64, \"..\")`",
            ),
            Meaning::Constant(Constant { expr, kind: Kind::Bool, .. }) => {
                self.append(Op::StaticAssert { cond: expr, message: message.to_string() }, cond.place);
            }
            other => {
                let found = self.describe(&other);
                self.errors.push_help(
                    cond.place,
                    format!("`static_assert!` needs a constant `bool`, not {found}"),
                    "compare constant parameters: `static_assert!(BLOCK_SIZE >= 64, \"..\")`",
                );
            }
        }
    }

    /// The place of an op, remembered for mistakes that are found in the IR.
    fn loc(&mut self, place: Place) -> crate::location::Loc {
        self.places.add(self.errors.seen(place))
    }

    fn device_assert(&mut self, cond: &crate::frontend::ast::Expr, message: &str) {
        if let Some(cond_value) = self.condition("device_assert!", "compare: `device_assert!(x >= 0, \"..\")`", cond) {
            self.append(Op::Assert { cond: cond_value, message: message.to_string(), assumed: false }, cond.place);
        }
    }

    fn assume(&mut self, cond: &crate::frontend::ast::Expr, place: Place) -> Meaning {
        match self.condition("assume", "compare: `assume(n > 0)`", cond) {
            Some(cond) => {
                self.append(Op::Assert { cond, message: "assumption failed".to_string(), assumed: true }, place);
                Meaning::UNIT
            }
            None => Meaning::Poison,
        }
    }

    /// A condition as a scalar: of a tile, every element must hold.
    fn condition(&mut self, word: &str, help: &str, cond: &crate::frontend::ast::Expr) -> Option<Value> {
        let meaning = self.expr(cond);
        if meaning.is_poison() {
            return None;
        }
        if self.elem_of(&meaning) != Some(Elem::Dtype(Dtype::Bool)) {
            let found = self.describe(&meaning);
            self.errors.push_help(cond.place, format!("`{word}` takes `bool`, not {found}"), help);
            return None;
        }
        let holds = self.value(&meaning, cond.place)?;
        Some(if self.func.ty(holds).is_tile() { self.all_hold(holds, cond.place) } else { holds })
    }

    /// Appends an op with one result; reports a broken type rule.
    fn emit(&mut self, op: Op, given: &[Type], place: Place) -> Option<Value> {
        let loc = self.loc(place);
        match Builder::new(&mut self.func, self.region, loc).try_op(op, given) {
            Ok(inst) => Some(self.func.result(inst)),
            Err(message) => {
                self.errors.push(place, message);
                None
            }
        }
    }

    /// Appends an op without results.
    fn append(&mut self, op: Op, place: Place) {
        let loc = self.loc(place);
        self.func.append(self.region, op, [], loc);
    }

    /// The element type of that name, if a type parameter has it.
    fn type_param(&self, name: &str) -> Option<Elem> {
        match self.frames.last() {
            Some(frame) => frame.types.iter().find(|(known, _)| known == name).map(|(_, elem)| elem.clone()),
            None => self.func.types.iter().find(|param| *param.name == *name).map(|param| Elem::Param(param.name.clone())),
        }
    }

    /// The names of the type parameters that are seen here.
    fn type_params(&self) -> Vec<String> {
        match self.frames.last() {
            Some(frame) => frame.types.iter().map(|(name, _)| name.clone()).collect(),
            None => self.func.types.iter().map(|param| param.name.to_string()).collect(),
        }
    }

    /// What the bound of a type parameter allows; a dtype allows itself.
    fn choices(&self, elem: &Elem) -> Vec<crate::dtype::Dtype> {
        match elem {
            Elem::Dtype(dtype) => vec![*dtype],
            Elem::Param(name) => {
                self.func.types.iter().find(|param| param.name == *name).map_or_else(Vec::new, |param| param.choices.clone())
            }
        }
    }
}
