//! THE DOOR: from a generic kernel to something that runs.

use crate::analysis::steps;
use crate::backend::{self, ptx::Site};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{Function, Op, Stage, Value, Violation, verify};
use crate::location::Loc;
use crate::passes::{self, PIPELINE, SIMPLIFY, UNCHECKED, assign_layouts, prefetch_loads, specialize::Bindings};
use crate::schedule::Schedule;
use crate::target::{Asked, Target};

/// What a compilation fixes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Values of the kernel's generics.
    pub bindings: Bindings,
    /// What the PTX is for.
    pub target: Target,
    /// How the work is spread over threads and time.
    pub schedule: Schedule,
    /// Does the kernel report the first lane outside its tensor? It then takes one more parameter: see [`backend::ptx::REPORT_BYTES`].
    pub checked: bool,
}

impl Options {
    /// The default schedule, for a target.
    pub fn new(bindings: Bindings, target: Target) -> Options {
        Options { bindings, target, schedule: Schedule::DEFAULT, checked: false }
    }
}

/// A compiled kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiled {
    /// The PTX module.
    pub ptx: String,
    /// The name of its entry: the kernel's, as PTX can spell it.
    pub entry: String,
    /// Bytes of dynamic shared memory of a CTA.
    pub shared_bytes: u32,
    /// The accesses that report, by their number; empty unless compiled `checked`.
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
/// What is wrong with these values, in the kernel language's words: see [`passes::specialize`]. A kernel that needs more shared memory or
/// registers than the target has: then the mistake is [`beyond_gpu`](Diagnostic::beyond_gpu). More parameters than a GPU takes.
pub fn compile(func: &Function, options: &Options) -> Result<Compiled, Diagnostics> {
    compile_with(func, options, &mut |_, _, _| {})
}

/// As [`compile`]; `after` sees the kernel after each pass, by the pass's name, and whether the pass changed it.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(func: &Function, options: &Options, after: &mut dyn FnMut(&str, &Function, bool)) -> Result<Compiled, Diagnostics> {
    compile_asking(func, options, &Asked::new(options.target), after)
}

/// As [`compile`]; gives also the other targets for which the code is the same, up to the lines that name the target.
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
    // A launch that looks for violations survives them, also in a kernel that is trusted otherwise.
    func.reports = options.checked;
    func.unchecked &= !options.checked;
    passes::run(&mut func, PIPELINE, &mut |pass, func, changed| after(pass.name, func, changed));
    let changed = prefetch_loads::run(&mut func, target, options.schedule)?;
    after("prefetch_loads", &func, changed);
    assign_layouts::run(&mut func, target, options.schedule)?;
    after("assign_layouts", &func, true);
    let verified = verify(&func, Stage::Gpu(options.schedule)).map_err(|violations| defect(&violations))?;
    backend::ptx::check_params(&func)?;
    let module = backend::ptx::emit(verified, target);
    if let Err(over) = backend::ptx::check_shared(module.shared_bytes, &module.shared_uses, target) {
        return with_fewer_stages(over, kernel, options, target, after);
    }
    Ok(Compiled { ptx: module.text, sites: module.sites, entry: module.entry, shared_bytes: module.shared_bytes })
}

/// Compiles a kernel again that takes too much shared memory: loops that do not say how many stages they have need not have as many.
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

/// Compiles a kernel for the CPU.
///
/// # Errors
/// As [`compile`].
pub fn compile_cpu(func: &Function, bindings: &Bindings) -> Result<backend::cpu::Program, Diagnostics> {
    // Whether a launch is checked is known when it runs.
    let func = simplified(func, bindings, None, true, &mut |_, _, _| {})?;
    let verified = verify(&func, Stage::Tile).map_err(|violations| defect(&violations))?;
    // The frontend writes a branch for the CPU around every text.
    if let Some(inst) = func.all_insts().into_iter().find(|inst| matches!(func.inst(*inst).op, Op::InlinePtx { .. })) {
        let mistake = Diagnostic::new(func.inst(inst).loc, "there is no `inline_ptx` on the CPU");
        return Err(mistake.help("choose by the target: `static_if (target == 0)`").into());
    }
    Ok(backend::cpu::Program::compile(verified))
}

/// What `static_print!` says of a kernel with these values on that target, or on the CPU, in order; nothing if they are mistaken.
pub fn notes(func: &Function, bindings: &Bindings, target: Option<Target>) -> Vec<(Loc, String)> {
    if !func.all_insts().iter().any(|inst| matches!(func.inst(*inst).op, Op::StaticPrint { .. })) {
        return Vec::new();
    }
    match passes::specialize::run(func, bindings, target.map(Asked::new).as_ref()) {
        Ok(func) => func.notes,
        Err(mistakes) => {
            // Whoever compiles it is told.
            mistakes.into_vec();
            Vec::new()
        }
    }
}

/// The pairs of a tensor and a scalar among the arguments of a generic kernel where the scalar is the distance of neighbours: where it is 1, a
/// variant that knows so reads and writes several elements at once. See [`analysis::steps`](crate::analysis::steps).
pub fn steps(func: &Function) -> Vec<(Value, Value)> {
    steps::compute(func)
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

/// A kernel that a pass broke: said as an error, because a user's build must not crash on our defect.
fn defect(violations: &[Violation]) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    for violation in violations {
        let message = format!("the compiler made a broken kernel: {violation}");
        diagnostics.push(Diagnostic::new(violation.loc, message).help("this is a defect of galatea: please report it with the kernel"));
    }
    diagnostics
}
