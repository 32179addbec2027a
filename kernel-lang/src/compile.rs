//! Entry point of the compiler: turns a generic kernel into PTX, or into verified tile IR for the CPU.

mod requirements;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::analysis::unit_strides;
use crate::backend::{self, ptx::Site};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{Function, Op, Stage, Value, Verified, Violation, verify};
use crate::location::Loc;
use crate::passes::specialize_warps::{self, Decisions, Obstacle};
use crate::passes::{self, PIPELINE, SCHEDULE, SIMPLIFY, UNCHECKED, specialize::Bindings};
use crate::schedule::Schedule;
use crate::target::{Asked, Target};

/// The inputs of one compilation besides the kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Values of the kernel's generics.
    pub bindings: Bindings,
    /// The GPU architecture that the PTX is for.
    pub target: Target,
    /// How the work is spread over threads and time.
    pub schedule: Schedule,
    /// Does the kernel report the first access outside its tensor? It then takes one more parameter: see [`backend::ptx::REPORT_BYTES`].
    pub checked: bool,
}

impl Options {
    /// Options for a target with the default schedule.
    pub fn new(bindings: Bindings, target: Target) -> Options {
        Options { bindings, target, schedule: Schedule::DEFAULT, checked: false }
    }
}

/// A compiled kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiled {
    /// The PTX module.
    pub ptx: String,
    /// The name of the entry point: the kernel's name in a spelling that PTX allows.
    pub entry: String,
    /// Bytes of dynamic shared memory per CTA.
    pub shared_bytes: u32,
    /// The accesses that report violations, indexed by their number; empty unless compiled with `checked`.
    pub sites: Vec<Site>,
}

/// Compiles a kernel to PTX.
///
/// ```
/// use kernel_lang::{Bindings, Options, compile, ir, target::Target};
///
/// let kernel = ir::parse(
///     "kernel @fill<const B: i64>(%y: ptr_mut<f32>, %value: f32) {
///         %0 = arange {start = 0, end = B} : tile<i64, [B]>
///         %1 = broadcast %value : tile<f32, [B]>
///         store %y, %0, %1
///         return
///     }",
/// )?;
/// let options = Options::new(Bindings::new().constant("B", 512), Target::SM_80);
/// let compiled = compile(&kernel, &options).expect("512 is an extent");
/// assert!(compiled.ptx.contains("st.global.v4.f32"));
/// let rejected = compile(&kernel, &Options::new(Bindings::new().constant("B", 0), Target::SM_80)).unwrap_err();
/// assert_eq!(rejected.into_vec()[0].message, "the extent of a tile is a positive number, not 0");
/// # Ok::<(), kernel_lang::ir::ParseError>(())
/// ```
///
/// # Errors
/// - The bindings do not fit the kernel: see [`passes::specialize`].
/// - The kernel needs more shared memory or registers than the target has. The error is then marked [`beyond_gpu`](Diagnostic::beyond_gpu).
/// - The kernel has more parameters than a GPU accepts.
pub fn compile(func: &Function, options: &Options) -> Result<Compiled, Diagnostics> {
    compile_with(func, options, &mut |_, _, _| {})
}

/// Compiles as [`compile`] does. After each pass it calls `after` with the pass's name, the kernel and whether the pass changed the kernel.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(func: &Function, options: &Options, after: Observer<'_>) -> Result<Compiled, Diagnostics> {
    compile_explained(func, options, after).map(|(compiled, _)| compiled)
}

/// Compiles as [`compile_with`] does, and returns what the version with roles does, or why there is none.
pub(crate) fn compile_explained(func: &Function, options: &Options, after: Observer<'_>) -> Result<(Compiled, Roles), Diagnostics> {
    let prepared = Prepared::observed(func, &options.bindings, options.target, options.checked, after)?;
    let outcome = prepared.compile_observed(options.schedule, after)?;
    Ok((outcome.compiled, outcome.roles))
}

/// What the version with roles does, or why there is none.
pub(crate) type Roles = Result<Decisions, Obstacle>;

/// A compilation for a schedule.
struct Outcome {
    compiled: Compiled,
    /// The other targets for which the code is identical.
    alike: Vec<Target>,
    roles: Roles,
}

/// The name of the pass that makes the version with roles. The passes after it run on that version.
pub(crate) const WITH_ROLES: &str = "specialize_warps";

/// Called after each pass with the pass's name, the kernel and whether the pass changed the kernel.
type Observer<'a> = &'a mut dyn FnMut(&str, &Function, bool);

/// A kernel after the steps of a compilation that do not depend on its schedule: variants that differ only in their schedules share these steps.
///
/// ```
/// use kernel_lang::{Bindings, Options, Prepared, Schedule, compile, ir, target::Target};
///
/// let kernel = ir::parse(
///     "kernel @fill(%y: ptr_mut<f32>, %value: f32) {
///         %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
///         %1 = broadcast %value : tile<f32, [1024]>
///         store %y, %0, %1
///         return
///     }",
/// )?;
/// let prepared = Prepared::new(&kernel, &Bindings::new(), Target::SM_80, false).expect("it has no generics");
/// for num_warps in [1, 2, 4, 8] {
///     let schedule = Schedule { num_warps, ..Schedule::DEFAULT };
///     let (compiled, alike) = prepared.compile(schedule).expect("every GPU runs so many warps");
///     let options = Options { schedule, ..Options::new(Bindings::new(), Target::SM_80) };
///     assert_eq!(compiled, compile(&kernel, &options).expect("the same holds here"));
///     assert_eq!(alike, [Target::SM_90A]);
/// }
/// # Ok::<(), kernel_lang::ir::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Prepared {
    target: Target,
    /// The other targets that give the same answers to the questions of the preparation. So each variant begins with these.
    alike: Vec<Target>,
    /// The kernel after [`SIMPLIFY`].
    simplified: Function,
    /// The kernel after [`PIPELINE`], whose passes query whether a program is a cluster: for programs of one CTA, and for clusters. Each is computed
    /// when the first schedule needs it.
    by_cluster: [OnceLock<Function>; 2],
}

impl Prepared {
    /// Specialises and simplifies a kernel for all schedules. The other arguments are the fields of [`Options`].
    ///
    /// # Errors
    /// As [`compile`], if the bindings do not fit the kernel.
    pub fn new(kernel: &Function, bindings: &Bindings, target: Target, checked: bool) -> Result<Prepared, Diagnostics> {
        Prepared::observed(kernel, bindings, target, checked, &mut |_, _, _| {})
    }

    fn observed(
        kernel: &Function,
        bindings: &Bindings,
        target: Target,
        checked: bool,
        after: Observer<'_>,
    ) -> Result<Prepared, Diagnostics> {
        let asked = Asked::new(target);
        let mut simplified = simplified(kernel, bindings, Some(&asked), checked, after)?;
        simplified.reports = checked;
        // A launch that checks for violations suppresses the violating accesses, also in an `unchecked` kernel.
        simplified.unchecked &= !checked;
        Ok(Prepared { target, alike: asked.alike(), simplified, by_cluster: Default::default() })
    }

    /// Compiles the kernel for a schedule: the code is that of [`compile`]. Also returns the other targets for which the code is identical
    /// except for the lines that name the target.
    ///
    /// # Errors
    /// As [`compile`].
    pub fn compile(&self, schedule: Schedule) -> Result<(Compiled, Vec<Target>), Diagnostics> {
        self.compile_observed(schedule, &mut |_, _, _| {}).map(|outcome| (outcome.compiled, outcome.alike))
    }

    fn compile_observed(&self, schedule: Schedule, after: Observer<'_>) -> Result<Outcome, Diagnostics> {
        let target = Asked::resumed(self.target, self.alike.clone());
        check_schedule(schedule, &target)?;
        let is_cluster = schedule.num_ctas > 1;
        let func = self.by_cluster[usize::from(is_cluster)].get_or_init(|| {
            let mut func = self.simplified.clone();
            func.is_cluster = is_cluster;
            passes::run(&mut func, PIPELINE, &mut |pass, func, changed| after(pass.name, func, changed));
            // Each schedule copies the kernel, and a compact one is cheaper to copy.
            func.compact();
            func
        });
        let module = schedule_and_emit(func, schedule, &target, after)?;
        let with_roles = with_roles(&self.simplified, schedule, &target, after)?;
        let requires = &self.simplified.requires;
        if !requires.is_empty() && target.ask(Target::has_warpgroup_products) {
            requirements::check(requires, with_roles.as_ref().map(|(_, decisions)| decisions))?;
        }
        let ptx = module.text(with_roles.as_ref().ok().map(|(module, _)| module));
        let compiled = Compiled { ptx, entry: module.entry().to_owned(), shared_bytes: module.shared_bytes, sites: module.sites };
        Ok(Outcome { compiled, alike: target.alike(), roles: with_roles.map(|(_, decisions)| decisions) })
    }
}

/// The steps of a compilation that depend on the schedule. A kernel that takes too much shared memory is compiled with one stage less, as often
/// as necessary. Loops that state their own number of stages keep it.
fn schedule_and_emit(
    prepared: &Function,
    mut schedule: Schedule,
    target: &Asked,
    after: Observer<'_>,
) -> Result<backend::ptx::Module, Diagnostics> {
    loop {
        let func = scheduled(prepared, schedule, target, after)?;
        match backend::ptx::check_shared(&func, target, schedule) {
            Ok(()) => return emit(&func, schedule, target),
            Err(_) if schedule.num_stages > 1 => schedule.num_stages -= 1,
            Err(over) => return Err(over.into()),
        }
    }
}

/// The stage of a kernel after a pass of that name: from `assign_layouts` on, its tiles have layouts. After the passes of the PTX backend, that backend
/// accepts the kernel.
pub fn stage_after(pass: &str, schedule: Schedule) -> Stage {
    let mut with_layouts = SCHEDULE.iter().skip_while(|row| row.name != "assign_layouts");
    if backend::ptx::PASSES.iter().any(|row| row.name == pass) {
        Stage::Ptx(schedule)
    } else if with_layouts.any(|row| row.name == pass) {
        Stage::Gpu(schedule)
    } else {
        Stage::Tile
    }
}

/// The version of a kernel with roles, for launches whose tensors can be copied in blocks, or why the kernel has none. If its rings and exchanges take too much shared
/// memory, it has fewer slots.
fn with_roles(
    simplified: &Function,
    mut schedule: Schedule,
    target: &Asked,
    after: Observer<'_>,
) -> Result<Result<(backend::ptx::Module, Decisions), Obstacle>, Diagnostics> {
    loop {
        let (mut func, mut decisions) = match specialize_warps::run(simplified, target, schedule) {
            Ok(special) => special,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        after(WITH_ROLES, &func, true);
        passes::run(&mut func, PIPELINE, &mut |pass, func, changed| after(pass.name, func, changed));
        let func = scheduled(&func, schedule, target, after)?;
        let ring = decisions.rings.first().map_or(Loc::NONE, |ring| ring.loc);
        if backend::ptx::check_shared(&func, target, schedule).is_ok() {
            let module = emitted(&func, schedule, target)?;
            decisions.set_resources(module.shared_bytes, module.workers, schedule);
            let fits = backend::ptx::check_params(module.param_bytes).is_ok();
            return Ok(if fits { Ok((module, decisions)) } else { Err(Obstacle::Maps) });
        }
        match decisions.rings.iter().map(|ring| ring.slots - 1).min().filter(|fewer| *fewer >= specialize_warps::FEWEST_SLOTS) {
            Some(fewer) => schedule.num_stages = fewer,
            None => return Ok(Err(Obstacle::Memory(ring))),
        }
    }
}

/// The kernel after the passes that depend on the schedule.
fn scheduled(prepared: &Function, schedule: Schedule, target: &Asked, after: Observer<'_>) -> Result<Function, Diagnostics> {
    let mut func = prepared.clone();
    for rows in [SCHEDULE, backend::ptx::PASSES] {
        passes::run_scheduled(&mut func, rows, target, schedule, &mut |pass, func, changed| after(pass.name, func, changed))?;
    }
    Ok(func)
}

fn emit(func: &Function, schedule: Schedule, target: &Asked) -> Result<backend::ptx::Module, Diagnostics> {
    let module = emitted(func, schedule, target)?;
    backend::ptx::check_params(module.param_bytes)?;
    Ok(module)
}

fn emitted(func: &Function, schedule: Schedule, target: &Asked) -> Result<backend::ptx::Module, Diagnostics> {
    let verified = verify(func, Stage::Ptx(schedule)).map_err(|violations| defect(&violations))?;
    Ok(backend::ptx::emit(verified, target))
}

/// Compiles a kernel for an executor of tile IR on the CPU, the crate `kernel-cpu`: specialises, simplifies and verifies the kernel, and returns the
/// program that `translate` makes of it.
///
/// # Errors
/// As [`compile`].
pub fn compile_cpu<P>(func: &Function, bindings: &Bindings, translate: impl FnOnce(Verified<'_>) -> P) -> Result<P, Diagnostics> {
    // A CPU program decides at launch whether it checks, so the assertions stay in.
    let func = simplified(func, bindings, None, true, &mut |_, _, _| {})?;
    let verified = verify(&func, Stage::Tile).map_err(|violations| defect(&violations))?;
    // The frontend puts a CPU branch around every `inline_ptx!`, so only hand-written IR reaches this error.
    if let Some(inst) = func.all_insts().into_iter().find(|inst| matches!(func.inst(*inst).op, Op::InlinePtx { .. })) {
        let mistake = Diagnostic::new(func.inst(inst).loc, "there is no `inline_ptx` on the CPU");
        return Err(mistake.help("choose by the target: `static_if (target == 0)`").into());
    }
    Ok(translate(verified))
}

/// Specialises a kernel for the CPU, and removes assertions and dead ops. The result has the ops as they were written, for analyses such as
/// [`flops`](crate::analysis::flops).
///
/// # Errors
/// As [`compile`], if the bindings do not fit the kernel.
pub fn specialized(func: &Function, bindings: &Bindings) -> Result<Function, Diagnostics> {
    let mut func = passes::specialize::run(func, bindings, None)?;
    passes::drop_assertions::run(&mut func);
    passes::dce::run(&mut func);
    Ok(func)
}

/// The messages of `static_print!` for these bindings on that target (`None`: the CPU), in order. Empty if the bindings do not fit the
/// kernel.
pub fn notes(func: &Function, bindings: &Bindings, target: Option<Target>) -> Vec<(Loc, String)> {
    if !func.all_insts().iter().any(|inst| matches!(func.inst(*inst).op, Op::StaticPrint { .. })) {
        return Vec::new();
    }
    match passes::specialize::run(func, bindings, target.map(Asked::new).as_ref()) {
        Ok(func) => func.notes,
        Err(mistakes) => {
            // The compilation of the kernel reports these errors.
            mistakes.into_vec();
            Vec::new()
        }
    }
}

/// Pairs of a tensor and a scalar among the kernel's arguments where the scalar is the stride of neighbouring elements. A variant specialised
/// for stride 1 reads and writes several elements at once. See [`analysis::unit_strides`](crate::analysis::unit_strides).
pub fn steps(func: &Function) -> Vec<(Value, Value)> {
    unit_strides::compute(func)
}

fn simplified(
    func: &Function,
    bindings: &Bindings,
    target: Option<&Asked>,
    asserts: bool,
    after: Observer<'_>,
) -> Result<Function, Diagnostics> {
    let mut func = passes::specialize::run(func, bindings, target)?;
    after("specialize", &func, true);
    if !asserts {
        passes::run(&mut func, UNCHECKED, &mut |pass, func, changed| after(pass.name, func, changed));
    }
    passes::run(&mut func, SIMPLIFY, &mut |pass, func, changed| after(pass.name, func, changed));
    Ok(func)
}

fn check_schedule(schedule: Schedule, target: &Asked) -> Result<(), Diagnostics> {
    let Schedule { num_warps, num_ctas, maxnreg, .. } = schedule;
    let most_warps = target.ask(Target::max_warps);
    let (message, help) = if !num_warps.is_power_of_two() || num_warps > most_warps {
        let message = format!("`num_warps` is a power of two up to {most_warps}, not {num_warps}");
        (message, "4 and 8 are usual; a warp is 32 threads")
    } else if !num_ctas.is_power_of_two() || num_ctas > Schedule::MOST_CTAS {
        (format!("`num_ctas` is a power of two up to {}, not {num_ctas}", Schedule::MOST_CTAS), "1 is usual")
    } else if target.ask(|target| num_ctas > target.max_cluster()) {
        (format!("`num_ctas = {num_ctas}` makes clusters, and {} has none", target.name()), "leave `num_ctas` out on such devices")
    } else if let Some(registers) = maxnreg.filter(|registers| !(1..=Schedule::MOST_REGISTERS).contains(registers)) {
        (
            format!("`maxnreg` is a number up to {}, not {registers}", Schedule::MOST_REGISTERS),
            "leave it out, and the assembler takes what it needs",
        )
    } else if let Some(registers) = maxnreg.filter(|registers| registers * schedule.threads() > target.ask(Target::registers)) {
        let (threads, most) = (schedule.threads(), target.ask(Target::registers));
        let message = format!("{threads} threads of {registers} registers take more than the {most} that a GPU has for them");
        return Err(Diagnostic::new(Loc::NONE, message).help("say fewer `num_warps`, or a smaller `maxnreg`").beyond_gpu().into());
    } else {
        return Ok(());
    };
    Err(Diagnostic::new(Loc::NONE, message).help(help).into())
}

/// The errors for a kernel that fails verification. They are diagnostics, not a panic: a user's build must not crash on a compiler defect.
fn defect(violations: &[Violation]) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    for violation in violations {
        let message = format!("the compiler made a broken kernel: {violation}");
        diagnostics.push(Diagnostic::new(violation.loc, message).help("this is a defect of galatea: please report it with the kernel"));
    }
    diagnostics
}
