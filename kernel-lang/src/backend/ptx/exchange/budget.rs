//! Resource budgets of a kernel: shared memory and parameter bytes, compared with the target's limits, and the errors for kernels that
//! exceed them.

use crate::diagnostic::Diagnostic;
use crate::dtype::Dtype;
use crate::ir::{Function, Op, Type};
use crate::location::{Loc, Name};
use crate::target::Asked;

use crate::backend::ptx::exchange::shared::Allocation;

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
pub struct SharedUse {
    /// The span of the op in the source.
    pub loc: Loc,
    /// The source file, if it is not the kernel's own.
    pub file: Option<Name>,
    /// The op, in the terms of the kernel language.
    pub what: String,
    /// The bytes of shared memory that the op uses.
    pub bytes: u32,
}

/// The uses of shared memory at the peak, in the order of the addresses.
pub(crate) fn uses(func: &Function, peak: &[Allocation]) -> Vec<SharedUse> {
    let mut peak: Vec<&Allocation> = peak.iter().collect();
    peak.sort_by_key(|allocation| allocation.range.start);
    let of = |allocation: &&Allocation| {
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
pub(crate) fn check(bytes: u32, uses: &[SharedUse], target: &Asked) -> Result<(), Diagnostic> {
    if target.ask(|target| bytes <= target.shared_bytes()) {
        return Ok(());
    }
    let (name, most) = (target.name(), target.name().shared_bytes());
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
        Op::AsyncBuffer { slots } => format!("{slots} stages of a loop's loads"),
        Op::Butterfly { .. } => "`sort`".to_string(),
        Op::Convert { .. } => "an exchange between threads".to_string(),
        Op::Reduce { .. } => "a reduction".to_string(),
        Op::Scan { .. } => "a scan".to_string(),
        Op::Load { .. } | Op::Atomic { .. } => "what one thread found for all".to_string(),
        op => format!("`{}`", op.name()),
    }
}
