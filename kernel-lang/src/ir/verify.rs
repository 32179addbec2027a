//! The verifier: the invariants that every kernel keeps between passes.
//!
//! Structure:
//!
//! 1. A region ends in its only terminator: `return` ends the body, `condition` the test of a `while`, `yield` every other region.
//! 2. A value is used only where its definition dominates: later in the same region, or in a region nested there.
//! 3. The values that a region yields have the types that the surrounding op needs: its results, or the carried values of a loop.
//!    The regions of an `if` whose condition is an `any_in_warp` contain only ops in which no thread waits for another, and no other op uses such a scalar.
//! 4. The region of a `reduce` or `scan` contains pure ops on scalars only.
//!
//! Launch values:
//!
//! 5. The results of a `launch_value` are scalars that ops [known at launch](Op::is_known_at_launch) compute from the kernel's parameters, in its
//!    region or in front of it. A result that depends on program ids is a `bool`.
//!
//! Types:
//!
//! 6. The results of an op have the types of its [rule](super::rules). Only a `pointer` op has a pointer as result: branches and loops pass
//!    on numbers only.
//!
//! Stages:
//!
//! 7. [`Stage::Generic`] may name type and constant parameters and may contain `static_if` and `static_assert`. The later stages contain
//!    neither, and the extents of their tiles are powers of two.
//! 8. At [`Stage::Gpu`], and at [`Stage::Ptx`] behind it, every tile has a layout with its own extents and the lanes, warps and CTAs of the schedule, and the layout holds
//!    every element. No other value has a layout, and no kernel parameter is a tile. The values of one elementwise op have the same layout,
//!    and so do the values along a branch result or a loop-carried value. Every access is `in_bounds`: proved, or guarded by its mask. Only a
//!    `convert` moves elements between threads: ops that change the shape find their elements in the same thread, see [`super::renaming`].
//! 9. At that stage, tiles whose elements are located by index have a [bitwise](crate::layout::Layout::is_bitwise) layout: tiles computed
//!    from an `arange`, the offsets of accesses, and the operands of reductions, scans, gathers and histograms.
//! 10. At that stage, no op but a `reduce` moves data from one CTA to another.
//! 11. At that stage, every elementwise op has instructions, and the operands of a `dot` are [fragments](super::fragments()).
//!
//! Memory:
//!
//! 12. An access is 2, 4, 8 or 16 bytes wide, or accesses single elements, and has a cache operator that its instruction supports. A load
//!     does not release.
//! 13. An async buffer is the result of an `async_buffer`, and only `async_copy` and `local_load` name it. In its region an `async_copy` is
//!     followed by an `async_commit_group`, and a `local_load` follows an `async_wait` that leaves fewer groups in flight than the async
//!     buffer has slots. It reads a part of `common` slots, and the whole tile of others. Behind the allocation of shared memory, a `sync_threads` stands between the
//!     wait and a `local_load` of common slots.
//! 14. At [`Stage::Ptx`], the owner is the `reader` of each load that is `volatile` or reads what the kernel also writes, and of each `local_load`
//!     from a copy of such a tensor, or from a buffer to which only owners copy. Ops without layouts have no owner.
//! 15. At that stage, each async buffer has bytes of shared memory, which no other op uses while the buffer lives. All ranges begin at multiples of 16 bytes.
//!     All threads of a CTA, or of a program, meet at a `sync_threads`.
//!
//! Roles:
//!
//! 16. The body has at most one `roles` and one `runs_if`, and all rings. The producer of `roles` has scalars only. Each op of a ring stands in its role. The address,
//!     extents and strides of a tensor whose blocks are copied are launch values. No other kernel has a `worker`, and this one counts no programs.
//! 17. Behind a `ring_acquire`, its region copies to each block of the slot once.
//! 18. Behind a `ring_wait`, its region frees the slot, or the previous one, once. Products read blocks between both, and those in flight read no slot that is free.
//! 19. Only products in flight, the loops that carry them, and a `warpgroup_wait` use sums in flight, each once. A loop that frees previous slots is followed by a
//!     `warpgroup_wait`, which frees the last one.

mod async_buffers;
mod gpu;
mod readers;
mod roles;
mod scratch;

use std::borrow::Cow;
use std::fmt;

use crate::dtype::Dtype;
use crate::ir::arena::{Inst, Region, SideTable, Value};
use crate::ir::atomic::AtomicOp;
use crate::ir::computation::computation;
use crate::ir::constexpr::ConstExpr;
use crate::ir::function::Function;
use crate::ir::ops::{Cache, Op};
use crate::ir::rules;
use crate::ir::types::Type;
use crate::location::Loc;
use crate::schedule::Schedule;

use gpu::Gpu;
use readers::Written;

/// Maximum number of bytes per access of a thread.
const WIDEST: u32 = 16;

/// The stage of compilation, which determines the invariants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The output of the frontend: generic.
    Generic,
    /// Specialised: concrete types and shapes, no layouts.
    Tile,
    /// For a GPU: every tile has a layout, for programs with that many CTAs and warps.
    Gpu(Schedule),
    /// Ready for the PTX backend: the ops also state what that backend would otherwise have to decide.
    Ptx(Schedule),
}

/// A violated invariant: always a defect of the compiler, or of hand-written text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The op's position in the user's source, if it has one.
    pub loc: Loc,
    /// The name of the op.
    pub op: &'static str,
    /// The description of the violation.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` at {}: {}", self.op, self.loc, self.message)
    }
}

/// A kernel that keeps the invariants of a stage; backends accept only this type.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    func: &'a Function,
    stage: Stage,
}

impl<'a> Verified<'a> {
    /// The kernel.
    pub fn func(self) -> &'a Function {
        self.func
    }

    /// The stage whose invariants it keeps.
    pub fn stage(self) -> Stage {
        self.stage
    }
}

/// Checks a kernel against the invariants of a stage.
///
/// # Errors
/// All violations, in the order of the text.
pub fn verify(func: &Function, stage: Stage) -> Result<Verified<'_>, Vec<Violation>> {
    let gpu = match stage {
        Stage::Gpu(schedule) | Stage::Ptx(schedule) => Some(Gpu::of(func, schedule)),
        Stage::Generic | Stage::Tile => None,
    };
    let written = matches!(stage, Stage::Ptx(_)).then(|| Written::of(func));
    let mut cx = Verifier { func, stage, gpu, written, defined: SideTable::new(), has_async_buffers: false, violations: Vec::new() };
    if stage != Stage::Generic && !(func.types.is_empty() && func.consts.is_empty()) {
        cx.violations.push(Violation { loc: Loc::NONE, op: "kernel", message: "has generics after specialisation".to_string() });
    }
    for param in &func.params {
        cx.check_ty(func.ty(param.value), Loc::NONE, "kernel");
    }
    if cx.gpu.is_some() {
        cx.gpu_params();
    }
    cx.region(func.body, Terminator::Return);
    cx.roles();
    if cx.violations.is_empty() { Ok(Verified { func, stage }) } else { Err(cx.violations) }
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
    /// State for the invariants of the GPU stage; `None` at other stages.
    gpu: Option<Gpu>,
    /// State for the readers of loads; `None` before [`Stage::Ptx`].
    written: Option<Written>,
    defined: SideTable<Value, bool>,
    /// Is an op on an async buffer among those that were checked?
    has_async_buffers: bool,
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
        if self.has_async_buffers {
            self.copies(region);
            if matches!(self.stage, Stage::Ptx(_)) {
                self.held_memory(region);
            }
        }
        scope.into_iter().for_each(|value| self.defined[value] = false);
    }

    fn inst(&mut self, inst: Inst) {
        self.op(inst);
        let func = self.func;
        let given = func.inst(inst).results.map(|value| func.ty(*value));
        self.regions(inst, &given);
    }

    /// Checks an op without its regions. A function of its own, because the frames of `inst` add up over the depth of nesting.
    #[inline(never)]
    fn op(&mut self, inst: Inst) {
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
        let given = data.results.map(|value| func.ty(*value));
        let before = self.violations.len();
        match rules::result_types(func, &data.op, &given) {
            Err(message) => self.broken(inst, message),
            Ok(types) => {
                let are_given = types.len() == given.len() && types.iter().zip(&given).all(|(ty, given)| ty.as_ref() == *given);
                if !are_given {
                    self.broken(inst, format!("has results {} by its rule", list(&types.map(Cow::as_ref))));
                }
            }
        }
        if given.iter().any(|ty| ty.is_pointer()) && !matches!(data.op, Op::Pointer { .. } | Op::View { .. }) {
            self.broken(inst, "gives a pointer");
        }
        given.iter().for_each(|ty| self.check_ty(ty, data.loc, data.op.name()));
        let is_typed = self.violations.len() == before;
        if self.stage != Stage::Generic && data.op.is_static() {
            self.broken(inst, "stands only in generic kernels");
        }
        if self.stage != Stage::Generic {
            self.constants(inst);
        }
        self.modifiers(inst);
        self.buffers(inst);
        self.readers(inst);
        if let Stage::Ptx(schedule) = self.stage {
            self.shared_memory(inst, schedule);
        }
        if !matches!(data.op, Op::If { .. }) {
            data.op.for_each_operand(&mut |operand| {
                if differs_between_warps(func, operand) {
                    self.broken(inst, format!("uses {operand}, which may differ between warps"));
                }
            });
        }
        if let Some(mut gpu) = self.gpu.take() {
            // Layouts of tiles without a valid type mean nothing.
            if is_typed {
                self.gpu_invariants(inst, &mut gpu);
            }
            self.gpu = Some(gpu);
        } else if matches!(
            data.op,
            Op::Convert { .. } | Op::IssueLoads { .. } | Op::IfAny { .. } | Op::AnyInWarp { .. } | Op::SyncThreads { .. }
        ) {
            self.broken(inst, "stands only in kernels with layouts");
        }
    }

    /// Invariant 7: after specialisation, every constant expression is a literal.
    fn constants(&mut self, inst: Inst) {
        let is_known = |expr: &ConstExpr| matches!(expr, ConstExpr::Int(_) | ConstExpr::Float(_) | ConstExpr::Bool(_));
        let fits = |expr: &ConstExpr| expr.as_int().is_some_and(|int| i64::try_from(int).is_ok());
        match &self.func.inst(inst).op {
            Op::Const { value } if !is_known(value) => self.broken(inst, format!("is no number: `{value}`")),
            Op::Arange { start, end } if !(fits(start) && fits(end)) => {
                self.broken(inst, format!("counts from `{start}` to `{end}`, which no `i64` does"))
            }
            Op::Histogram { bins, .. } if !is_known(bins) => self.broken(inst, format!("has `{bins}` bins")),
            // No rule of types: the frontend asserts it with a message of its own.
            Op::Sort { x, count: Some(count), .. } => {
                let extent = self.func.ty(*x).shape().last().and_then(ConstExpr::as_int);
                if let (Some(count), Some(extent)) = (count.as_int(), extent)
                    && !(1..=extent).contains(&count)
                {
                    self.broken(inst, format!("sorts {extent} elements along the last axis, and has no first {count} of them"));
                }
            }
            Op::For { num_stages, unroll, .. } => {
                if let Some(option) = [num_stages, unroll].into_iter().flatten().find(|option| !is_known(option)) {
                    self.broken(inst, format!("is told `{option}`, which is no number"));
                }
            }
            _ => {}
        }
    }

    /// Invariant 12: instructions support the modifiers of each access.
    fn modifiers(&mut self, inst: Inst) {
        let (cache, align) = match &self.func.inst(inst).op {
            Op::Load { cache, align, .. } | Op::AsyncCopy { cache, align, .. } => {
                (matches!(cache, Cache::WriteBack | Cache::WriteThrough).then_some(*cache), *align)
            }
            Op::Store { cache, align, .. } => (matches!(cache, Cache::All | Cache::Volatile).then_some(*cache), *align),
            Op::Atomic { op: AtomicOp::Load, sem, .. } if sem.releases() => {
                return self.broken(inst, format!("only loads, and cannot be `{}`", sem.text()));
            }
            Op::Atomic { base, op, align, .. } => {
                if *align != 0 && !op.has_vectors(self.func.ty(*base).dtype()) {
                    self.broken(inst, "updates one element at once".to_string());
                }
                (None, *align)
            }
            _ => return,
        };
        if let Some(cache) = cache {
            self.broken(inst, format!("cannot have the cache operator `{}`", cache.text()));
        }
        if align != 0 && !(align.is_power_of_two() && align <= WIDEST) {
            self.broken(inst, format!("moves {align} bytes at once: it is a power of two up to {WIDEST}"));
        }
    }

    /// Invariants 3, 4 and 5, then those of each nested region.
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
                    if matches!(func.inst(inst).op, Op::If { cond, .. } if differs_between_warps(func, cond)) {
                        self.stays_in_threads(*region);
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
            Op::IfAny { .. } => self.if_any(inst, results),
            Op::Roles { producer, consumer } => {
                for region in [producer, consumer] {
                    self.region(*region, Terminator::Yield);
                    if ended(region) && !(func.yielded(*region).is_empty() && func.region(*region).params.is_empty()) {
                        self.broken(inst, "has roles that take or give values");
                    }
                }
            }
            Op::LaunchValue { compute } => {
                self.region(*compute, Terminator::Yield);
                if ended(compute) && types(func.yielded(*compute)) != results {
                    self.broken(inst, format!("yields {} for {}", list(&types(func.yielded(*compute))), list(results)));
                }
                if ended(compute) {
                    self.known_at_launch(inst, *compute);
                }
            }
            _ => {}
        }
    }

    /// Invariant 3 of an `if_any`: elementwise ops compute the tiles that it yields.
    fn if_any(&mut self, inst: Inst, results: &[&Type]) {
        let func = self.func;
        let Op::IfAny { mask, group, body } = func.inst(inst).op else { return };
        if !group.is_power_of_two() {
            self.broken(inst, format!("has groups of {group} elements, which is no power of two"));
        }
        self.region(body, Terminator::Yield);
        if !func.region(body).insts.is_empty() {
            let yielded: Vec<&Type> = func.yielded(body).iter().map(|value| func.ty(*value)).collect();
            if yielded != results {
                self.broken(inst, format!("yields {} for {}", list(&yielded), list(results)));
            }
        }
        let is_own = |inner: &Inst| {
            let data = func.inst(*inner);
            data.op.is_terminator() || data.op.is_elementwise() && data.results.iter().all(|result| func.ty(*result).is_tile())
        };
        if !func.region(body).insts.iter().all(is_own) || !func.region(body).params.is_empty() {
            self.broken(inst, "computes tiles by elementwise ops only");
        }
        let shape = func.ty(mask).shape();
        if results.iter().any(|result| result.shape() != shape) {
            self.broken(inst, format!("gives tiles of another shape than its mask: {}", list(results)));
        }
    }

    /// Invariant 3 of a region that some warps of a program skip.
    fn stays_in_threads(&mut self, region: Region) {
        let func = self.func;
        for inst in &func.region(region).insts {
            let op = &func.inst(*inst).op;
            if !op.is_terminator() && !op.stays_in_threads(func) {
                self.broken(*inst, "may wait for warps that skip it");
            }
        }
    }

    /// Invariant 5.
    fn known_at_launch(&mut self, launch_value: Inst, compute: Region) {
        let func = self.func;
        if !func.region(compute).params.is_empty() {
            self.broken(launch_value, "has region parameters");
        }
        for value in func.yielded(compute) {
            let Some(ops) = computation(func, *value, &Op::is_known_at_launch) else {
                self.broken(launch_value, "has a result that the host cannot compute");
                continue;
            };
            let has_ids = ops.iter().any(|inst| matches!(func.inst(*inst).op, Op::ProgramId { .. }));
            let ty = func.ty(*value);
            if has_ids && ty.elem().dtype() != Some(Dtype::Bool) {
                self.broken(launch_value, format!("has a result `{ty}` that differs between programs"));
            }
        }
    }

    /// Invariant 4. A `static_if` may select among such ops.
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

    /// Invariant 7.
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

/// Is a scalar the same only for the threads of a warp?
fn differs_between_warps(func: &Function, scalar: Value) -> bool {
    matches!(func.def_op(scalar), Some(Op::AnyInWarp { .. }))
}
