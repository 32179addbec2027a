//! Resource budgets of a kernel: shared memory and parameter bytes, compared with the target's limits, and the errors for kernels that
//! exceed them.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::diagnostic::Diagnostic;
use crate::dtype::Dtype;
use crate::ir::{Function, Inst, Op, Type};
use crate::location::{Loc, Name};
use crate::schedule::Schedule;
use crate::target::Asked;

use crate::backend::ptx::exchange::cluster;
use crate::backend::ptx::exchange::shared::WIDEST;
use crate::backend::ptx::memory::async_buffer::last_users;

/// The maximum number of parameter bytes of a kernel (PTX ISA, "Kernel Function Parameters").
const PARAM_BYTES: usize = 32764;
/// The maximum before PTX ISA 8.1.
const OLD_PARAM_BYTES: usize = 4352;

/// The lowest PTX ISA version that accepts so many bytes of parameters.
pub(crate) fn version_for_params(bytes: usize) -> (u32, u32) {
    if bytes > OLD_PARAM_BYTES { (8, 1) } else { (1, 5) }
}

/// Checks that the parameters of a kernel fit.
///
/// # Errors
/// If the parameters do not fit.
pub(crate) fn check_params(bytes: usize) -> Result<(), Diagnostic> {
    if bytes <= PARAM_BYTES {
        return Ok(());
    }
    let message = format!("this kernel takes {bytes} bytes of parameters, 16 for each tensor, and a GPU takes at most {PARAM_BYTES}");
    Err(Diagnostic::new(Loc::NONE, message).help("take fewer tensors, or one tensor of addresses: `Ptr<u64>`"))
}

/// The bytes of a kernel's parameters, each aligned to its own size, with its launch values.
pub(crate) fn param_bytes(func: &Function, launch_types: &[Dtype]) -> usize {
    let mut end: usize = 0;
    for param in &func.params {
        let (size, align) = match func.ty(param.value) {
            Type::Pointer { .. } => (16, 8),
            ty => (ty.dtype().bytes(), ty.dtype().bytes()),
        };
        end = end.next_multiple_of(align) + size;
    }
    if func.reports {
        end = end.next_multiple_of(8) + 8;
    }
    launch_types.iter().fold(end, |end, dtype| end.next_multiple_of(dtype.bytes()) + dtype.bytes())
}

/// An op that uses shared memory at the point of the kernel's peak use.
#[derive(Clone, PartialEq, Eq, Debug)]
struct SharedUse {
    /// The span of the op in the source.
    loc: Loc,
    /// The source file, if it is not the kernel's own.
    file: Option<Name>,
    /// The op, in the terms of the kernel language.
    what: String,
    /// The bytes of shared memory that the op uses.
    bytes: u32,
}

/// A range of shared memory and the op that uses it; no op, if the exchanges of a cluster do.
#[derive(Clone)]
struct Allocation {
    range: Range<u32>,
    op: Option<Inst>,
}

/// The end of the last bytes of shared memory that each op uses; of no op: those that the exchanges of a cluster use.
pub(crate) fn ends(func: &Function, schedule: Schedule) -> FxHashMap<Option<Inst>, u32> {
    let of_ops = func.all_insts().into_iter().filter_map(|inst| Some((Some(inst), func.scratch[inst].as_ref()?.end())));
    of_ops.chain(of_cluster(func, schedule).map(|range| (None, range.end))).collect()
}

fn of_cluster(func: &Function, schedule: Schedule) -> Option<Range<u32>> {
    cluster::slot_bytes(func, schedule).map(|bytes| 0..(2 * bytes).next_multiple_of(WIDEST))
}

/// The allocations that live when the maximum is first reached.
fn peak(func: &Function, schedule: Schedule) -> Vec<Allocation> {
    let last_users = last_users(func);
    let mut live: Vec<Allocation> = of_cluster(func, schedule).map(|range| Allocation { range, op: None }).into_iter().collect();
    let (mut bytes, mut peak) = (0, live.clone());
    func.for_each_inst(func.body, &mut |inst| {
        for part in func.scratch[inst].iter().flat_map(|scratch| &scratch.parts) {
            let own = Allocation { range: part.range.clone(), op: Some(inst) };
            if part.range.end > bytes {
                bytes = part.range.end;
                peak = live.iter().cloned().chain([own.clone()]).collect();
            }
            if matches!(func.inst(inst).op, Op::AsyncBuffer { .. }) {
                live.push(own);
            }
        }
        // A buffer lives on in the regions of its last user.
        live.retain(|held| {
            held.op.is_none_or(|op| last_users.get(&func.inst(op).results[0]).is_none_or(|last| !ends_with(func, *last, inst)))
        });
    });
    peak
}

/// Is an op the last one of another op and its regions?
fn ends_with(func: &Function, whole: Inst, inst: Inst) -> bool {
    let mut last = whole;
    func.inst(whole).op.for_each_region(&mut |region| last = func.terminator(region));
    last == inst
}

/// The uses of shared memory at the peak, in the order of the addresses.
fn uses(func: &Function, schedule: Schedule) -> Vec<SharedUse> {
    let mut peak = peak(func, schedule);
    peak.sort_by_key(|allocation| allocation.range.start);
    let of = |allocation: &Allocation| {
        let (loc, what) = match allocation.op {
            Some(inst) => (func.inst(inst).loc, words(&func.inst(inst).op)),
            None => (Loc::NONE, "scalars of the reductions, which the CTAs of a program exchange,".to_string()),
        };
        let file = func.files.get(usize::from(loc.file)).filter(|_| loc.file > 0).cloned();
        SharedUse { loc, file, what, bytes: allocation.range.end - allocation.range.start }
    };
    peak.iter().map(of).collect()
}

/// Compares the shared memory of a kernel with the limit of the target.
///
/// # Errors
/// If the memory exceeds the limit. The error names each op with its line and its bytes.
pub(crate) fn check(func: &Function, target: &Asked, schedule: Schedule) -> Result<(), Diagnostic> {
    let bytes = ends(func, schedule).into_values().max().unwrap_or_default();
    if target.ask(|target| bytes <= target.shared_bytes()) {
        return Ok(());
    }
    let (name, most) = (target.name(), target.name().shared_bytes());
    let uses = uses(func, schedule);
    let list: Vec<String> = uses.iter().map(SharedUse::to_string).collect();
    let message = format!("this kernel takes {bytes} bytes of shared memory, and {name} has {most}: {}", list.join("; "));
    let loc = uses.iter().rev().max_by_key(|own| own.bytes).map_or(Loc::NONE, |own| own.loc);
    let help = if uses.iter().any(|own| own.what.contains("stages")) {
        "say a smaller `num_stages`, or make the tiles smaller"
    } else {
        "make the tiles smaller, or `num_warps`"
    };
    Err(Diagnostic::new(loc, message).help(help).beyond_gpu())
}

impl std::fmt::Display for SharedUse {
    /// `3 stages of loads (line 12): 49152 bytes`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)?;
        match &self.file {
            Some(file) => write!(f, " (`{file}`, line {})", self.loc.line)?,
            None if self.loc.is_some() => write!(f, " (line {})", self.loc.line)?,
            None => {}
        }
        write!(f, ": {} bytes", self.bytes)
    }
}

/// The description of an op that uses shared memory.
fn words(op: &Op) -> String {
    match op {
        Op::AsyncBuffer { slots: 1, common: true } => "an operand of `dot`".to_string(),
        Op::AsyncBuffer { slots, .. } => format!("{slots} stages of a loop's loads"),
        Op::Butterfly { .. } => "`sort`".to_string(),
        Op::Convert { .. } => "an exchange between threads".to_string(),
        Op::Reduce { .. } => "a reduction".to_string(),
        Op::Scan { .. } => "a scan".to_string(),
        Op::Load { .. } | Op::Atomic { .. } => "what one thread found for all".to_string(),
        op => format!("`{}`", op.name()),
    }
}
