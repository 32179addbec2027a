//! The law book: what holds of every kernel between passes.
//!
//! Structure
//! 1. A region ends in one terminator and has none before: `return` ends the body, `yield` every other region, `condition` the test of a `while`.
//! 2. A value is used only where its definition reaches: later in the same region, or in a region nested there.
//! 3. What a region yields has the types that the op around it needs: its results, or the carried values of a loop.
//! 4. The region of a `reduce` or `scan` holds pure ops on scalars only.
//!
//! Types
//! 5. The results of an op have the types of its [rule](super::rules). Only a `pointer` gives a pointer: branches and loops hand on numbers.
//!
//! Stages
//! 6. [`Stage::Generic`] may name type and constant parameters and may hold `static_if` and `static_assert`; the later stages do neither, and
//!    the extents of their tiles are powers of two.
//! 7. At [`Stage::Gpu`] every tile has a layout of its own extents, values of one elementwise op have the same one, and every access is
//!    `in_bounds`: proved, or guarded by its mask. Only a `convert` moves elements between threads: ops that change the shape find theirs where
//!    they are, see [`super::renaming`]. What is reduced or scanned has a [bitwise](crate::layout::Layout::is_bitwise) layout.

use std::borrow::Cow;
use std::fmt;

use crate::ir::arena::{Inst, Region, SideTable, Value};
use crate::ir::constexpr::ConstExpr;
use crate::ir::function::Function;
use crate::ir::ops::Op;
use crate::ir::renaming::register_sources;
use crate::ir::rules;
use crate::ir::types::Type;
use crate::layout::conversion;
use crate::location::Loc;

/// Which law a kernel obeys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// As the frontend makes it: generic.
    Generic,
    /// Specialised: concrete types and shapes, no layouts.
    Tile,
    /// Ready for a GPU: every tile has a layout.
    Gpu,
}

/// A law that a kernel breaks: always a defect of the compiler, or of hand-written text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Place in the user's source of the op, if it has one.
    pub loc: Loc,
    /// The name of the op.
    pub op: &'static str,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` at {}: {}", self.op, self.loc, self.message)
    }
}

/// A kernel that obeys the law of a stage: what backends take.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    func: &'a Function,
}

impl<'a> Verified<'a> {
    /// The kernel.
    pub fn func(self) -> &'a Function {
        self.func
    }
}

/// Checks a kernel against the law of a stage.
///
/// # Errors
/// Everything that is broken, in the order of the text.
pub fn verify(func: &Function, stage: Stage) -> Result<Verified<'_>, Vec<Violation>> {
    let mut cx = Verifier { func, stage, defined: SideTable::new(), violations: Vec::new() };
    if stage != Stage::Generic && !(func.types.is_empty() && func.consts.is_empty()) {
        cx.violations.push(Violation { loc: Loc::NONE, op: "kernel", message: "has generics after specialisation".to_string() });
    }
    for param in &func.params {
        cx.check_ty(func.ty(param.value), Loc::NONE, "kernel");
    }
    cx.region(func.body, Terminator::Return);
    if cx.violations.is_empty() { Ok(Verified { func }) } else { Err(cx.violations) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Terminator {
    Return,
    Yield,
    Condition,
}

struct Verifier<'a> {
    func: &'a Function,
    stage: Stage,
    defined: SideTable<Value, bool>,
    violations: Vec<Violation>,
}

impl Verifier<'_> {
    fn broken(&mut self, inst: Inst, message: impl Into<String>) {
        let data = self.func.inst(inst);
        self.violations.push(Violation { loc: data.loc, op: data.op.name(), message: message.into() });
    }

    fn region(&mut self, region: Region, terminator: Terminator) {
        let func = self.func;
        let data = func.region(region);
        let mut scope = data.params.clone();
        data.params.iter().for_each(|param| self.defined[*param] = true);
        for (index, inst) in data.insts.iter().enumerate() {
            let is_last = index + 1 == data.insts.len();
            let op = &func.inst(*inst).op;
            let ends_it = match op {
                Op::Return {} => Some(Terminator::Return),
                Op::Yield { .. } => Some(Terminator::Yield),
                Op::Condition { .. } => Some(Terminator::Condition),
                _ => None,
            };
            if ends_it != is_last.then_some(terminator) {
                self.broken(*inst, "a region ends in the one terminator of its kind");
            }
            self.inst(*inst);
            for result in &func.inst(*inst).results {
                self.defined[*result] = true;
                scope.push(*result);
            }
        }
        if data.insts.is_empty() {
            self.violations.push(Violation { loc: Loc::NONE, op: "region", message: "is empty".to_string() });
        }
        scope.into_iter().for_each(|value| self.defined[value] = false);
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let data = func.inst(inst);
        let mut undefined = Vec::new();
        data.op.for_each_operand(&mut |value| {
            if !self.defined[value] {
                undefined.push(value);
            }
        });
        for value in undefined {
            self.broken(inst, format!("uses {value} where it is not defined"));
        }
        let given: Vec<&Type> = data.results.iter().map(|value| func.ty(*value)).collect();
        match rules::result_types(func, &data.op, &given) {
            Err(message) => self.broken(inst, message),
            Ok(types) => {
                let types: Vec<&Type> = types.iter().map(Cow::as_ref).collect();
                if types != given {
                    self.broken(inst, format!("has results {} by its rule", list(&types)));
                }
            }
        }
        if given.iter().any(|ty| ty.is_pointer()) && !matches!(data.op, Op::Pointer { .. }) {
            self.broken(inst, "gives a pointer");
        }
        given.iter().for_each(|ty| self.check_ty(ty, data.loc, data.op.name()));
        if self.stage != Stage::Generic && data.op.is_static() {
            self.broken(inst, "stands only in generic kernels");
        }
        if self.stage == Stage::Gpu {
            self.layouts(inst);
        } else if matches!(data.op, Op::Convert { .. }) {
            self.broken(inst, "stands only in kernels with layouts");
        }
        self.regions(inst, &given);
    }

    /// Law 7.
    fn layouts(&mut self, inst: Inst) {
        let func = self.func;
        let data = func.inst(inst);
        if data.op.access().is_some_and(|access| !access.in_bounds) {
            self.broken(inst, "is not guarded");
        }
        for value in data.results.iter().filter(|value| func.ty(**value).is_tile()) {
            let extents: Vec<u32> = func.ty(*value).extents().iter().map(|extent| *extent as u32).collect();
            if func.layouts[*value].as_ref().is_none_or(|layout| layout.shape() != extents) {
                self.broken(inst, format!("{value} has no layout of its extents"));
            }
        }
        let changes_shape = matches!(
            data.op,
            Op::Broadcast { .. }
                | Op::ExpandDims { .. }
                | Op::Reshape { .. }
                | Op::Permute { .. }
                | Op::Reduce { .. }
                | Op::Gather { .. }
                | Op::Histogram { .. }
                | Op::Convert { .. }
                | Op::For { .. }
                | Op::While { .. }
        );
        let mut first = data.results.iter().copied().find(|value| func.ty(*value).is_tile());
        let mut differ = false;
        data.op.for_each_operand(&mut |value| {
            if func.ty(value).is_tile() {
                differ |= func.layouts[*first.get_or_insert(value)] != func.layouts[value];
            }
        });
        if differ && !changes_shape && !data.op.is_terminator() {
            self.broken(inst, "has operands of different layouts");
        }
        self.moves_nothing(inst);
    }

    /// The end of law 7.
    fn moves_nothing(&mut self, inst: Inst) {
        let func = self.func;
        let data = func.inst(inst);
        let x = match &data.op {
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } if func.ty(*x).numel() > 1 => *x,
            Op::Convert { x } => {
                let layouts = func.layouts[*x].as_ref().zip(func.layouts[data.results[0]].as_ref());
                if layouts.is_none_or(|(from, to)| conversion(from, to, 32).is_err()) {
                    self.broken(inst, "converts to a layout that needs what no thread of the program holds");
                }
                return;
            }
            Op::Sort { .. } => return self.broken(inst, "stands only in kernels without layouts"),
            Op::Gather { index, .. } if func.layouts[*index] != func.layouts[data.results[0]] => {
                return self.broken(inst, "has an index in another layout than its result");
            }
            Op::Histogram { x, mask: Some(mask), .. } if func.layouts[*x] != func.layouts[*mask] => {
                return self.broken(inst, "has a mask in another layout than what it counts");
            }
            Op::Butterfly { x, .. } if func.layouts[*x].as_ref().is_none_or(|layout| !layout.is_bitwise()) => {
                return self.broken(inst, "turns over a bit of an index in a layout that is not bitwise");
            }
            Op::Reduce { inputs, .. } | Op::Scan { inputs, .. } => {
                let layouts = inputs.iter().map(|input| func.layouts[*input].as_ref()).collect::<Vec<_>>();
                if layouts.iter().any(|layout| layout.is_none_or(|layout| !layout.is_bitwise()) || *layout != layouts[0]) {
                    return self.broken(inst, "combines tiles whose layouts are not bitwise and the same");
                }
                inputs[0]
            }
            _ => return,
        };
        let is_scan = matches!(data.op, Op::Scan { .. });
        for result in data.results.iter().filter(|result| !is_scan && func.ty(**result).is_tile()) {
            if register_sources(func, &data.op, x, *result).is_none() {
                self.broken(inst, format!("{result} has a layout that needs elements of other threads"));
            }
        }
    }

    /// Laws 3 and 4, then each region's own.
    fn regions(&mut self, inst: Inst, results: &[&Type]) {
        let func = self.func;
        let types = |values: &[Value]| values.iter().map(|value| func.ty(*value)).collect::<Vec<_>>();
        let ended = |region: &Region| !func.region(*region).insts.is_empty();
        match &func.inst(inst).op {
            Op::If { then_region, else_region, .. } | Op::StaticIf { then_region, else_region, .. } => {
                for region in [then_region, else_region] {
                    self.region(*region, Terminator::Yield);
                    if ended(region) && types(func.yielded(*region)) != results {
                        self.broken(inst, format!("yields {} for results {}", list(&types(func.yielded(*region))), list(results)));
                    }
                    if !func.region(*region).params.is_empty() {
                        self.broken(inst, "has region parameters");
                    }
                }
            }
            Op::For { lower, init, body, .. } => {
                let carried = types(init);
                let mut params = vec![func.ty(*lower)];
                params.extend(&carried);
                if types(&func.region(*body).params) != params {
                    self.broken(inst, format!("has region parameters {} for {}", list(&types(&func.region(*body).params)), list(&params)));
                }
                self.region(*body, Terminator::Yield);
                if ended(body) && types(func.yielded(*body)) != carried {
                    self.broken(inst, format!("yields {} for {}", list(&types(func.yielded(*body))), list(&carried)));
                }
            }
            Op::StaticFor { init, body, .. } => {
                let carried = types(init);
                if types(&func.region(*body).params) != carried {
                    self.broken(inst, format!("has region parameters that are not {}", list(&carried)));
                }
                self.region(*body, Terminator::Yield);
                if ended(body) && types(func.yielded(*body)) != carried {
                    self.broken(inst, format!("yields {} for {}", list(&types(func.yielded(*body))), list(&carried)));
                }
            }
            Op::While { init, test, body } => {
                let carried = types(init);
                for (region, terminator) in [(test, Terminator::Condition), (body, Terminator::Yield)] {
                    if types(&func.region(*region).params) != carried {
                        self.broken(inst, format!("has region parameters that are not {}", list(&carried)));
                    }
                    self.region(*region, terminator);
                    if ended(region) && types(func.yielded(*region)) != carried {
                        self.broken(inst, format!("yields {} for {}", list(&types(func.yielded(*region))), list(&carried)));
                    }
                }
            }
            Op::Reduce { inputs, combine, .. } | Op::Scan { inputs, combine, .. } => {
                let elems: Vec<Type> = inputs.iter().map(|value| Type::scalar(func.ty(*value).elem().clone())).collect();
                let elems: Vec<&Type> = elems.iter().collect();
                let params = [&elems[..], &elems].concat();
                if types(&func.region(*combine).params) != params {
                    let found = types(&func.region(*combine).params);
                    self.broken(inst, format!("has region parameters {} for {}", list(&found), list(&params)));
                }
                self.region(*combine, Terminator::Yield);
                if ended(combine) && types(func.yielded(*combine)) != elems {
                    self.broken(inst, format!("yields {} for {}", list(&types(func.yielded(*combine))), list(&elems)));
                }
                self.pure_scalars(*combine);
            }
            _ => {}
        }
    }

    /// Law 4. A `static_if` may choose among such ops.
    fn pure_scalars(&mut self, combine: Region) {
        let func = self.func;
        func.for_each_inst(combine, &mut |inst| {
            let data = func.inst(inst);
            let mut scalar = data.results.iter().all(|value| func.ty(*value).is_scalar());
            data.op.for_each_operand(&mut |value| scalar &= func.ty(value).is_scalar());
            let is_static = data.op.is_static() && !matches!(data.op, Op::Print { .. });
            let allowed = data.op.is_pure() || is_static || matches!(data.op, Op::Yield { .. });
            if !(scalar && allowed) {
                self.broken(inst, "stands where two elements are combined: pure ops on scalars only");
            }
        });
    }

    /// Law 6.
    fn check_ty(&mut self, ty: &Type, loc: Loc, op: &'static str) {
        if self.stage == Stage::Generic {
            return;
        }
        let legal = |dim: &ConstExpr| dim.as_int().is_some_and(|extent| extent > 0 && extent.count_ones() == 1);
        if ty.elem().dtype().is_none() || !ty.shape().iter().all(legal) {
            self.violations.push(Violation { loc, op, message: format!("has the type `{ty}`") });
        }
    }
}

fn list(types: &[&Type]) -> String {
    let words: Vec<String> = types.iter().map(|ty| format!("`{ty}`")).collect();
    format!("({})", words.join(", "))
}
