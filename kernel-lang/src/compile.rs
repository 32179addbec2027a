//! Entry point of the compiler: turns a generic kernel into PTX, or into verified tile IR for the CPU.

use crate::analysis::unit_strides;
use crate::backend::{self, ptx::Site};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{Function, Op, Stage, Value, Verified, Violation, verify};
use crate::location::Loc;
use crate::passes::{self, PIPELINE, SIMPLIFY, UNCHECKED, assign_layouts, group_loads, issue_loads, prefetch_loads, specialize::Bindings};
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
pub fn compile_with(func: &Function, options: &Options, after: &mut dyn FnMut(&str, &Function, bool)) -> Result<Compiled, Diagnostics> {
    compile_asking(func, options, &Asked::new(options.target), after)
}

/// Compiles as [`compile`] does and also returns the other targets for which the code is identical except for the lines that name the target.
///
/// # Errors
/// As [`compile`].
pub fn compile_alike(func: &Function, options: &Options) -> Result<(Compiled, Vec<Target>), Diagnostics> {
    let target = Asked::new(options.target);
    let compiled = compile_asking(func, options, &target, &mut |_, _, _| {})?;
    Ok((compiled, target.alike()))
}

fn compile_asking(
    kernel: &Function,
    options: &Options,
    target: &Asked,
    after: &mut dyn FnMut(&str, &Function, bool),
) -> Result<Compiled, Diagnostics> {
    check_schedule(options, target)?;
    let mut func = simplified(kernel, &options.bindings, Some(target), options.checked, after)?;
    // A launch that checks for violations suppresses the violating accesses, also in an `unchecked` kernel.
    func.reports = options.checked;
    func.is_cluster = options.schedule.num_ctas > 1;
    func.unchecked &= !options.checked;
    passes::run(&mut func, PIPELINE, &mut |pass, func, changed| after(pass.name, func, changed));
    let changed = prefetch_loads::run(&mut func, target, options.schedule)?;
    after("prefetch_loads", &func, changed);
    assign_layouts::run(&mut func, target, options.schedule)?;
    after("assign_layouts", &func, true);
    let changed = group_loads::run(&mut func);
    after("group_loads", &func, changed);
    let changed = issue_loads::run(&mut func);
    after("issue_loads", &func, changed);
    let verified = verify(&func, Stage::Gpu(options.schedule)).map_err(|violations| defect(&violations))?;
    backend::ptx::check_params(&func)?;
    let module = backend::ptx::emit(verified, target);
    if let Err(over) = backend::ptx::check_shared(module.shared_bytes, &module.shared_uses, target) {
        return with_fewer_stages(over, kernel, options, target, after);
    }
    Ok(Compiled { ptx: module.text, sites: module.sites, entry: module.entry, shared_bytes: module.shared_bytes })
}

/// Compiles a kernel that takes too much shared memory again, with one stage less in the schedule. Loops that state their own number of
/// stages keep it.
fn with_fewer_stages(
    over: Diagnostic,
    func: &Function,
    options: &Options,
    target: &Asked,
    after: &mut dyn FnMut(&str, &Function, bool),
) -> Result<Compiled, Diagnostics> {
    let Some(num_stages) = options.schedule.num_stages.checked_sub(1).filter(|stages| *stages > 0) else { return Err(over.into()) };
    let schedule = Schedule { num_stages, ..options.schedule };
    compile_asking(func, &Options { schedule, ..options.clone() }, target, after)
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
    after: &mut dyn FnMut(&str, &Function, bool),
) -> Result<Function, Diagnostics> {
    let mut func = passes::specialize::run(func, bindings, target)?;
    after("specialize", &func, true);
    if !asserts {
        passes::run(&mut func, UNCHECKED, &mut |pass, func, changed| after(pass.name, func, changed));
    }
    passes::run(&mut func, SIMPLIFY, &mut |pass, func, changed| after(pass.name, func, changed));
    Ok(func)
}

fn check_schedule(options: &Options, target: &Asked) -> Result<(), Diagnostics> {
    let Schedule { num_warps, num_ctas, maxnreg, .. } = options.schedule;
    let most_warps = target.ask(Target::max_warps);
    let (message, help) = if !num_warps.is_power_of_two() || num_warps > most_warps {
        let message = format!("`num_warps` is a power of two up to {most_warps}, not {num_warps}");
        (message, "4 and 8 are usual; a warp is 32 threads")
    } else if !num_ctas.is_power_of_two() || num_ctas > Schedule::MOST_CTAS {
        (format!("`num_ctas` is a power of two up to {}, not {num_ctas}", Schedule::MOST_CTAS), "1 is usual")
    } else if target.ask(|target| num_ctas > target.max_cluster()) {
        (format!("`num_ctas = {num_ctas}` makes clusters, and {} has none", options.target), "leave `num_ctas` out on such devices")
    } else if let Some(registers) = maxnreg.filter(|registers| !(1..=Schedule::MOST_REGISTERS).contains(registers)) {
        (
            format!("`maxnreg` is a number up to {}, not {registers}", Schedule::MOST_REGISTERS),
            "leave it out, and the assembler takes what it needs",
        )
    } else if let Some(registers) = maxnreg.filter(|registers| registers * options.schedule.threads() > target.ask(Target::registers)) {
        let (threads, most) = (options.schedule.threads(), target.ask(Target::registers));
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
