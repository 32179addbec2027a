//! Variables and their visibility.

use super::{Elaborator, Meaning};
use crate::ast::{Block, Expr, ExprKind, Name, Pattern, Stmt, StmtKind};
use crate::builtins;
use crate::signature::dtype_of;
use crate::span::SourceSpan;
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::ConstExpr;

use super::meaning::Kind;

/// The kind of declaration of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Parameter,
    /// An option without a default that the call omits: it can only be passed on.
    LeftOut,
    Let,
    LoopIndex,
}

/// A variable, with its meaning at the current point of the walk.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) meaning: Meaning,
    pub(super) mutable: bool,
    pub(super) origin: Origin,
    /// The span that the user is shown for a parameter: the argument.
    pub(super) argument: Option<SourceSpan>,
}

impl Elaborator<'_> {
    pub(super) fn declare(&mut self, variable: Variable) {
        self.variables.push(variable);
        let index = self.variables.len() - 1;
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(index);
        }
    }

    /// Runs `inside` in a new scope.
    pub(super) fn scoped<R>(&mut self, inside: impl FnOnce(&mut Self) -> R) -> R {
        self.scopes.push(Vec::new());
        let result = inside(self);
        self.scopes.pop();
        result
    }

    /// The innermost variable of that name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.visible().iter().rev().find_map(|scope| scope.iter().rev().copied().find(|index| self.variables[*index].name == name))
    }

    /// The visible scopes: in a function's body only its own.
    fn visible(&self) -> &[Vec<usize>] {
        &self.scopes[self.frames.last().map_or(0, |frame| frame.scopes)..]
    }

    /// Is it an option of the function that its call omits?
    pub(super) fn is_left_out(&self, expr: &Expr) -> bool {
        let ExprKind::Name(name) = &expr.kind else { return false };
        self.find(name).is_some_and(|index| self.variables[index].origin == Origin::LeftOut)
    }

    /// The current meanings of all variables.
    pub(super) fn meanings(&self) -> Vec<Meaning> {
        self.variables.iter().map(|variable| variable.meaning.clone()).collect()
    }

    /// Restores the meanings of the variables that existed at an earlier point.
    pub(super) fn restore(&mut self, before: &[Meaning]) {
        for (variable, meaning) in self.variables.iter_mut().zip(before) {
            variable.meaning = meaning.clone();
        }
    }

    /// Elaborates a name in an expression.
    pub(super) fn name(&mut self, name: &str, span: SourceSpan) -> Meaning {
        if let Some(index) = self.find(name) {
            if let Some(argument) = self.variables[index].argument {
                self.errors.stands_for(span, argument);
            }
            if self.variables[index].origin == Origin::LeftOut {
                let help = format!("give it a default, `#[option(..)] {name}`, or only pass it on: `{name} = {name}`");
                self.errors.push_help(span, format!("the option `{name}` is left out here, so that it has no value"), help);
            }
            return self.variables[index].meaning.clone();
        }
        if let Some(frame) = self.frames.last() {
            if let Some((_, meaning)) = frame.consts.iter().find(|(known, _)| known == name) {
                return meaning.clone();
            }
        } else if let Some(param) = self.func.consts.iter().find(|param| *param.name == *name) {
            // Floats of two types never mix, so a float keeps its type. An integer takes that of the other operand.
            let (kind, elem) = match param.dtype {
                Dtype::Bool => (Kind::Bool, None),
                dtype if dtype.is_float() => (Kind::Float, Some(dtype.into())),
                _ => (Kind::Int, None),
            };
            return Meaning::constant(ConstExpr::Param(param.name.clone()), kind, elem);
        }
        let (message, help) = self.unknown_name(name);
        let help = help.unwrap_or_else(|| match self.frames.last() {
            None => "a kernel sees its parameters, its generics and its own variables".to_string(),
            Some(frame) => {
                let name = &frame.func.name.text;
                format!("`{name}` sees its parameters, its generics and its own variables; pass it as an argument")
            }
        });
        self.errors.push_help(span, message, help);
        Meaning::Poison
    }

    /// Is an unknown name most likely a variable whose declaration is missing, and not a misspelt name or a name with a meaning?
    pub(super) fn is_declarable(&self, name: &str) -> bool {
        !self.is_constant_parameter(name) && self.unknown_name(name).1.is_none()
    }

    pub(super) fn is_constant_parameter(&self, name: &str) -> bool {
        match self.frames.last() {
            Some(frame) => frame.consts.iter().any(|(known, _)| known == name),
            None => self.func.consts.iter().any(|param| *param.name == *name),
        }
    }

    /// The message for an unknown name, and the help if the name is near another or has a meaning elsewhere.
    fn unknown_name(&self, name: &str) -> (String, Option<String>) {
        if dtype_of(name).is_some() || self.type_param(name).is_some() {
            return (
                format!("`{name}` is a type, not a value"),
                Some(format!("cast with `x as {name}`, make tiles with `zeros::<{name}>([N])`")),
            );
        }
        if builtins::find(name).is_some() {
            return (
                format!("`{name}` is a function, not a value"),
                Some(format!("call it: `{}`", builtins::find(name).map_or("", |row| row.usage))),
            );
        }
        let visible = self.visible().iter().flatten().map(|index| self.variables[*index].name.as_str()).filter(|name| !name.contains(' '));
        let consts: Vec<&str> = match self.frames.last() {
            Some(frame) => frame.consts.iter().map(|(name, _)| name.as_str()).collect(),
            None => self.func.consts.iter().map(|param| &*param.name).collect(),
        };
        let message = format!("there is no variable `{name}` here");
        if matches!(name, "None" | "Some") {
            return (format!("`{name}` has no meaning in a kernel"), Some("an option that is not wanted is left out".to_string()));
        }
        if let Some(help) = of_a_gpu(name) {
            return (message, Some(help.to_string()));
        }
        if let Some(rust) = of_python(name) {
            return (message, Some(format!("write `{rust}`")));
        }
        if let Some(near) = did_you_mean(name, visible.chain(consts)) {
            return (message, Some(format!("did you mean `{near}`?")));
        }
        if self.frames.is_empty() && self.variables.iter().any(|variable| variable.name == name) {
            let help = format!("it is declared in a block that has ended, or later; declare it before: `let mut {name} = ..;`");
            return (message, Some(help));
        }
        if self.frames.is_empty() && name.chars().all(|c| c.is_uppercase() || c == '_' || c.is_ascii_digit()) {
            let help = format!(
                "the macro does not see what a constant outside is: declare it in the body, `const {name}: f32 = ..;`, or as a parameter, `const {name}: usize`"
            );
            return (message, Some(help));
        }
        (message, None)
    }

    /// The visible variables that a loop assigns to, in the order of declaration.
    pub(super) fn assigned(&self, parts: &[&Block], conds: &[&Expr]) -> Vec<usize> {
        let mut names = Assigned { local: Vec::new(), names: Vec::new() };
        conds.iter().for_each(|cond| names.expr(cond));
        parts.iter().for_each(|block| names.block(block));
        let mut found: Vec<usize> = names.names.iter().filter_map(|name| self.find(name)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The help for a name from Triton or CUDA.
fn of_a_gpu(name: &str) -> Option<&'static str> {
    Some(match name {
        "tl" | "triton" => "builtins need no module: `program_id(0)`, `load(x + offsets)`",
        "num_warps" | "num_stages" | "num_ctas" | "maxnreg" => {
            "it belongs to the schedule, which an attribute sets: `#[kernel(num_warps = 8)]`; a kernel does not read it"
        }
        "threadIdx" | "blockIdx" | "blockDim" | "gridDim" => {
            "a kernel is written for a whole block: `program_id(0) * N + arange(0, N)` are its indices"
        }
        "pass" => "a block without statements is `{}`",
        _ => return None,
    })
}

/// The Rust spelling of a name from Python.
pub(super) fn of_python(name: &str) -> Option<&'static str> {
    Some(match name {
        "True" => "true",
        "False" => "false",
        "inf" | "infinity" => "f32::INFINITY",
        "nan" => "f32::NAN",
        "pi" => "std::f32::consts::PI",
        _ => return None,
    })
}

/// Collects assignments in a body to variables that the body does not declare.
struct Assigned {
    local: Vec<String>,
    names: Vec<String>,
}

impl Assigned {
    fn block(&mut self, block: &Block) {
        let depth = self.local.len();
        block.stmts.iter().for_each(|stmt| self.stmt(stmt));
        if let Some(value) = &block.value {
            self.expr(value);
        }
        self.local.truncate(depth);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let(pattern, _, value) => {
                self.expr(value);
                for_each_name(pattern, &mut |name| self.local.push(name.text.clone()));
            }
            StmtKind::Assign(pattern, value) => {
                self.expr(value);
                for_each_name(pattern, &mut |name| self.add(&name.text));
            }
            StmtKind::Update(target, _, value) => {
                self.expr(value);
                for_each_name(target, &mut |name| self.add(&name.text));
            }
            StmtKind::Expr(value) | StmtKind::DeviceAssert(value, _) => self.expr(value),
            StmtKind::DevicePrint(_, values) => values.iter().for_each(|value| self.expr(value)),
            StmtKind::If(inner) => {
                self.expr(&inner.cond);
                self.block(&inner.then_block);
                inner.else_block.iter().for_each(|block| self.block(block));
            }
            StmtKind::Block(block) => self.block(block),
            StmtKind::For(inner) => {
                [Some(&inner.lower), Some(&inner.upper), inner.step.as_ref()].into_iter().flatten().for_each(|expr| self.expr(expr));
                let depth = self.local.len();
                for_each_name(&inner.index, &mut |name| self.local.push(name.text.clone()));
                self.block(&inner.body);
                self.local.truncate(depth);
            }
            StmtKind::While(inner) => {
                self.expr(&inner.cond);
                self.block(&inner.body);
            }
            StmtKind::Dead(_)
            | StmtKind::StaticAssert(..)
            | StmtKind::StaticPrint(..)
            | StmtKind::Return(_)
            | StmtKind::Break
            | StmtKind::Continue => {}
        }
    }

    fn add(&mut self, name: &str) {
        if !self.local.iter().any(|local| local == name) {
            self.names.push(name.to_string());
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::If(inner) => {
                self.expr(&inner.cond);
                self.block(&inner.then_block);
                inner.else_block.iter().for_each(|block| self.block(block));
            }
            ExprKind::Block(block) => self.block(block),
            // A closure can assign only to its own variables.
            ExprKind::Closure(..) => {}
            _ => expr.operands().into_iter().for_each(|operand| self.expr(operand)),
        }
    }
}

/// Visits every name that a pattern binds or assigns to.
pub(super) fn for_each_name(pattern: &Pattern, visit: &mut dyn FnMut(&Name)) {
    match pattern {
        Pattern::Name { name, .. } => visit(name),
        Pattern::Tuple(list, _) => list.iter().for_each(|elem| for_each_name(elem, visit)),
        Pattern::Struct { fields, .. } => fields.iter().for_each(|(_, inner)| for_each_name(inner, visit)),
        Pattern::Field { variable, .. } => visit(variable),
        Pattern::Wild | Pattern::Error => {}
    }
}
