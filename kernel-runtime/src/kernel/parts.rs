//! The parts of a kernel and of its recorded launches, which a package holds instead of a program.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{self, Elem, Evict, Op, Stage, Type};
use kernel_lang::{Bindings, Schedule};

use super::{Kernel, MachineCode, Param, ParamKind, Variant};
use crate::launch::fact::{self, Fact};
use crate::launch::recording::{MOST_KEYS, MOST_WORDS};
use crate::ops::OpsError;
use crate::ops::recorder::{RecordedArg, RecordedLaunch};
use crate::{Dim, Error, Result, Site, Target};

/// The parts of a kernel. [`KernelParts::of`] takes them out of a kernel of this program, and [`KernelParts::kernel`] makes a kernel of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KernelParts {
    /// The name in the source.
    pub name: String,
    /// The text of the IR, generic over types and constants.
    pub ir: String,
    /// The schedule of a launch without a configuration.
    pub schedule: Schedule,
    /// The parameters, in order.
    pub params: Vec<(String, ParamKind)>,
    /// The facts that variants may rely on, in the order of the bits of a key's last word.
    pub facts: Vec<FactParts>,
    /// The compiled variants. Those that were built with the program come first.
    pub variants: Vec<VariantParts>,
    /// What records of tuning know of the kernel, if a launch has configurations.
    pub built: Option<BuiltParts>,
}

/// What records of tuning know of a kernel: with it, the kernel of a package has the records of the program that wrote the package.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BuiltParts {
    /// The number of variants that were built with the program. The others were compiled for the package.
    pub count: usize,
    /// For each target, the hash of the PTX that the program has for a GPU of it.
    pub contents: Vec<(String, String)>,
    /// The text of a file with the results of tuning that the package has for the kernel; empty if it has none.
    pub records: String,
}

/// A fact about the scalar argument of a parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FactParts {
    /// The name of the parameter.
    pub param: String,
    /// The condition.
    pub known: KnownParts,
}

/// The condition of a fact.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KnownParts {
    /// The argument word has these bits.
    Is(u64),
    /// The argument is a multiple of a power of two.
    MultipleOf(u64),
}

/// PTX of a kernel, see [`Variant`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VariantParts {
    /// The words for types, constants and facts.
    pub key: Vec<u64>,
    /// The schedule.
    pub schedule: Schedule,
    /// The architecture, such as `sm_80`.
    pub target: String,
    /// The name of the function in the PTX.
    pub entry: String,
    /// The dynamic shared memory of one CTA.
    pub shared_bytes: u32,
    /// The text of the PTX.
    pub ptx: String,
    /// Machine code of the PTX, for some architectures.
    pub machine_code: Vec<MachineCodeParts>,
}

/// Machine code of a variant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MachineCodeParts {
    /// The architecture, such as `sm_86` or `sm_90a`.
    pub architecture: String,
    /// The file that the assembler wrote.
    pub bytes: Arc<[u8]>,
}

impl KernelParts {
    /// The parts of a kernel, with the variants of these keys for all schedules, targets and facts. `is_tuned` says whether a launch has configurations.
    pub fn of(kernel: &Kernel, keys: &[&[u64]], is_tuned: bool) -> KernelParts {
        let is_wanted = |variant: &Variant| keys.iter().any(|key| variant.key.starts_with(key) && variant.key.len() <= key.len() + 1);
        let machine_code = |number: usize| {
            let codes = kernel.machine_code.get(number).copied().unwrap_or_default();
            codes.iter().map(|code| MachineCodeParts { architecture: code.architecture.to_string(), bytes: code.bytes.into() }).collect()
        };
        let wanted = kernel.variants.iter().enumerate().filter(|(_, variant)| is_wanted(variant));
        let variants = wanted.map(|(number, variant)| VariantParts {
            key: variant.key.to_vec(),
            schedule: variant.schedule,
            target: variant.target.to_owned(),
            entry: variant.entry.to_owned(),
            shared_bytes: variant.shared_bytes,
            ptx: variant.ptx.to_owned(),
            machine_code: machine_code(number),
        });
        KernelParts {
            name: kernel.name.to_owned(),
            ir: kernel.ir.to_owned(),
            schedule: kernel.schedule,
            params: kernel.params.iter().map(|param| (param.name.to_owned(), param.kind)).collect(),
            facts: kernel.facts.iter().map(Fact::parts).collect(),
            variants: variants.collect(),
            built: is_tuned.then(|| kernel.built_parts(is_wanted)),
        }
    }

    /// A variant of a kernel for this key and schedule, or else the kernel's own schedule, compiled now.
    ///
    /// # Errors
    /// [`Error::Compile`], or [`OpsError::NotAKernel`] in a program without the compiler.
    pub fn compile(kernel: &'static Kernel, key: &[u64], schedule: Option<Schedule>, target: Target) -> Result<VariantParts> {
        let schedule = schedule.unwrap_or(kernel.schedule);
        #[cfg(feature = "jit")]
        {
            let kernel_lang::Compiled { ptx, entry, shared_bytes, .. } = kernel.compiled(key, schedule, target)?;
            Ok(VariantParts { key: key.to_vec(), schedule, target: target.to_string(), entry, shared_bytes, ptx, machine_code: Vec::new() })
        }
        #[cfg(not(feature = "jit"))]
        {
            let _ = schedule;
            let reason = format!("this program has no compiler for {target} ({})", kernel.parameters(key));
            Err(Error::Ops(OpsError::NotAKernel { name: kernel.name.to_owned(), reason }))
        }
    }

    /// The types, constants and facts of a variant's key, such as `T = f32, BLOCK_SIZE = 1024, n % 16 = 0`.
    ///
    /// # Errors
    /// As [`KernelParts::kernel`].
    pub fn parameters(&self, key: &[u64]) -> Result<String> {
        let func = self.checked()?;
        let mut bindings = super::bindings(&func, key, &[]);
        let known = key.get(func.types.len() + func.consts.len()).copied().unwrap_or(0);
        for (_, fact) in self.facts.iter().enumerate().filter(|(at, _)| known >> at & 1 == 1) {
            bindings = fact.bind(&func, bindings);
        }
        Ok(super::written_bindings(&func, bindings))
    }

    /// The text of the IR without source locations, which the edit of a comment changes.
    pub fn ir_without_locations(&self) -> String {
        ir_without_locations(&self.ir)
    }

    /// A kernel of these parts, for the rest of the process: equal parts give one kernel.
    ///
    /// # Errors
    /// [`OpsError::NotAKernel`] for IR that is not valid, or that belongs to other parameters or facts; for an `unchecked` kernel, and one that prints.
    ///
    /// # Safety
    /// The PTX of each variant takes the argument words of the parameters, and does what the IR does for its key. Its machine code does what its PTX does.
    pub unsafe fn kernel(self) -> Result<&'static Kernel> {
        let mut kernels = kernels(true);
        if let Some(kernel) = kernels.get(&self) {
            return Ok(kernel);
        }
        self.checked()?;
        // SAFETY: the parts are checked, and the caller vouches for the variants.
        Ok(unsafe { self.leaked(&mut kernels, true) })
    }

    /// A kernel of parts that a stranger wrote, for the rest of the process. It has no variants, no facts and no part in records of tuning: each device
    /// compiles the IR, which has only ops of safe kernels and no `inline_ptx`. Its launches are not [tuned](RecordedLaunch::tuned).
    ///
    /// # Errors
    /// As [`KernelParts::kernel`], for ops that are only safe if their author is trusted, and [`OpsError::KernelMemory`] once all such kernels
    /// take [`KernelParts::MOST_UNTRUSTED_BYTES`].
    pub fn untrusted(mut self) -> Result<&'static Kernel> {
        self.variants.clear();
        self.facts.clear();
        self.built = None;
        let func = self.checked()?;
        let is_refused = |op: &&Op| matches!(op, Op::InlinePtx { .. } | Op::Address { .. });
        if let Some(op) = func.all_insts().into_iter().map(|inst| &func.inst(inst).op).find(is_refused) {
            return Err(self.refused(format!("its IR has a `{}`, which only trusted packages may have", op.name())));
        }
        let mut kernels = kernels(false);
        if let Some(kernel) = kernels.get(&self) {
            return Ok(kernel);
        }
        charge(&self.name, BYTES_PER_TEXT * self.ir.len())?;
        // SAFETY: the parts are checked, and there are no variants.
        Ok(unsafe { self.leaked(&mut kernels, false) })
    }

    /// The most bytes that untrusted kernels and their programs take together in one process, which never frees them.
    pub const MOST_UNTRUSTED_BYTES: usize = 256 << 20;

    /// # Safety
    /// As [`KernelParts::kernel`], of checked parts.
    unsafe fn leaked(self, kernels: &mut HashMap<KernelParts, &'static Kernel>, is_trusted: bool) -> &'static Kernel {
        let text = |text: &String| &*String::leak(text.clone());
        let params: Vec<Param> = self.params.iter().map(|(name, kind)| Param { name: text(name), kind: *kind }).collect();
        let variants = self.variants.iter().map(|variant| Variant {
            key: variant.key.clone().leak(),
            schedule: variant.schedule,
            target: text(&variant.target),
            entry: text(&variant.entry),
            shared_bytes: variant.shared_bytes,
            ptx: text(&variant.ptx),
        });
        let variants: Vec<Variant> = variants.collect();
        let facts: Vec<Fact> = self.facts.iter().filter_map(|fact| fact.of(&params)).collect();
        // SAFETY: the caller vouches for the variants. `checked` compared the parameters and the facts with the IR, whose accesses are guarded.
        let kernel = unsafe { Kernel::new(text(&self.name), text(&self.ir), self.schedule, params.leak(), variants.leak()) };
        let code = |MachineCodeParts { architecture, bytes }: &MachineCodeParts| {
            let bytes = &**Box::leak(Box::new(bytes.clone()));
            // A later version may know architectures of other names.
            Some(MachineCode { architecture: architecture.parse().ok()?, bytes })
        };
        let codes = self.variants.iter().map(|variant| &*variant.machine_code.iter().filter_map(code).collect::<Vec<_>>().leak());
        let machine_code = codes.collect::<Vec<_>>().leak();
        let kernel = Kernel { built: self.built.clone(), machine_code, is_trusted, ..kernel.specializing(facts.leak()) };
        let kernel: &'static Kernel = Box::leak(Box::new(kernel));
        kernels.insert(self, kernel);
        kernel
    }

    fn refused(&self, reason: String) -> Error {
        Error::Ops(OpsError::NotAKernel { name: self.name.clone(), reason })
    }

    /// Compares the parts with the IR, and returns it.
    fn checked(&self) -> Result<ir::Function> {
        let refused = |reason: String| self.refused(reason);
        let func = ir::parse(&self.ir).map_err(|error| refused(format!("its IR cannot be read: {error}")))?;
        ir::verify(&func, Stage::Generic).map_err(|violations| {
            let first = violations.first().map_or_else(String::new, |violation| format!("{}: {}", violation.op, violation.message));
            refused(format!("its IR is not valid: {first}"))
        })?;
        if *func.name != *self.name {
            return Err(refused(format!("its IR is that of `{}`", func.name)));
        }
        if func.unchecked || func.has_prints() {
            return Err(refused("it is `unchecked`, or prints".to_owned()));
        }
        if let Some(op) = func.all_insts().into_iter().map(|inst| &func.inst(inst).op).find(|op| !is_of_source(op)) {
            return Err(refused(format!("its IR has a `{}` that no safe kernel has", op.name())));
        }
        let expected: Vec<(String, IrParam)> = self.params.iter().flat_map(|(name, kind)| ir_params(name, *kind)).collect();
        let is_expected = |(param, (name, kind)): (&ir::Param, &(String, IrParam))| {
            let fits = match (func.ty(param.value), kind) {
                (Type::Pointer { mutable, .. }, IrParam::Pointer { writes }) => mutable == writes,
                (Type::Tile { elem, shape }, IrParam::Index) => shape.is_empty() && elem.dtype() == Some(Dtype::I64),
                (Type::Tile { shape, .. }, IrParam::Scalar) => shape.is_empty(),
                _ => false,
            };
            // An outer constant, such as `2.0 * EPS`, has another name in the IR than in the source.
            fits && (*param.name == **name || matches!(kind, IrParam::Scalar))
        };
        if func.params.len() != expected.len() || !func.params.iter().zip(&expected).all(is_expected) {
            return Err(refused("its parameters are not those of its IR".to_owned()));
        }
        if self.facts.len() > 64 {
            return Err(refused("it has more than 64 facts".to_owned()));
        }
        let is_scalar = |name: &str| self.params.iter().any(|(param, kind)| param == name && matches!(kind, ParamKind::Scalar));
        let is_fact = |fact: &&FactParts| match fact.known {
            KnownParts::Is(_) => is_scalar(&fact.param),
            KnownParts::MultipleOf(of) => is_scalar(&fact.param) && of.is_power_of_two(),
        };
        if let Some(fact) = self.facts.iter().find(|fact| !is_fact(fact)) {
            return Err(refused(format!("it has a fact of `{}`, which is no scalar parameter", fact.param)));
        }
        let most_stages = ir::MAX_STAGES as u32;
        if !(1..=most_stages).contains(&self.schedule.num_stages) {
            return Err(refused(format!("its `num_stages` is {}, and 1 to {most_stages} are possible", self.schedule.num_stages)));
        }
        Ok(func)
    }
}

/// What a parsed kernel takes at most, in bytes for each byte of its text.
pub(crate) const BYTES_PER_TEXT: usize = 64;

/// Counts the memory of an untrusted kernel, which is never freed.
pub(crate) fn charge(kernel: &str, bytes: usize) -> Result<()> {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let limit = KernelParts::MOST_UNTRUSTED_BYTES;
    let needed = TAKEN.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    if needed <= limit {
        return Ok(());
    }
    TAKEN.fetch_sub(bytes, Ordering::Relaxed);
    Err(Error::Ops(OpsError::KernelMemory { kernel: kernel.to_owned(), needed, limit }))
}

/// The kernels of parts, which are never freed. Those of trusted and of untrusted packages are separate.
fn kernels(are_trusted: bool) -> MutexGuard<'static, HashMap<KernelParts, &'static Kernel>> {
    static KERNELS: [OnceLock<Mutex<HashMap<KernelParts, &'static Kernel>>>; 2] = [const { OnceLock::new() }; 2];
    KERNELS[usize::from(are_trusted)].get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn ir_without_locations(ir: &str) -> String {
    ir.lines().map(super::without_source_location).flat_map(|line| [line, "\n"]).collect()
}

impl FactParts {
    /// The fact, if one of these parameters is its scalar.
    fn of(&self, params: &[Param]) -> Option<Fact> {
        let at = params.iter().position(|param| param.name == self.param && matches!(param.kind, ParamKind::Scalar))?;
        let word = params[..at].iter().map(|param| param.kind.words()).sum();
        Some(match self.known {
            KnownParts::Is(bits) => Fact::is(params[at].name, word, bits),
            KnownParts::MultipleOf(of) => Fact::multiple_of(params[at].name, word, of),
        })
    }

    /// Binds the parameter to the value or the divisor that the fact states.
    fn bind(&self, func: &ir::Function, bindings: Bindings) -> Bindings {
        match self.known {
            KnownParts::Is(bits) => fact::bind_value(func, &self.param, bits, bindings),
            KnownParts::MultipleOf(of) => bindings.multiple(&self.param, of.into()),
        }
    }
}

impl VariantParts {
    /// The text of the PTX without source locations and comments.
    pub fn ptx_without_locations(&self) -> String {
        self.ptx.lines().filter(|line| !super::is_source_location(line)).flat_map(|line| [line, "\n"]).collect()
    }
}

/// A parameter in the IR.
pub(super) enum IrParam {
    Pointer {
        writes: bool,
    },
    /// An extent or a stride.
    Index,
    Scalar,
}

/// The parameters in the IR for one of the source, by their names.
pub(super) fn ir_params(name: &str, kind: ParamKind) -> Vec<(String, IrParam)> {
    let of_view = |rank: usize, writes: bool| {
        let extents = (0..rank).map(|axis| (format!("{name}_extent{axis}"), IrParam::Index));
        let strides = (0..rank.saturating_sub(1)).map(|axis| (format!("{name}_stride{axis}"), IrParam::Index));
        std::iter::once((name.to_owned(), IrParam::Pointer { writes })).chain(extents).chain(strides).collect()
    };
    match kind {
        ParamKind::Pointer => vec![(name.to_owned(), IrParam::Pointer { writes: false })],
        ParamKind::PointerMut => vec![(name.to_owned(), IrParam::Pointer { writes: true })],
        ParamKind::View(rank) => of_view(rank, false),
        ParamKind::ViewMut(rank) => of_view(rank, true),
        ParamKind::Scalar => vec![(name.to_owned(), IrParam::Scalar)],
    }
}

/// Whether the frontend makes such an op of a safe kernel. Passes make the others, from what they have proved, and `pointer` trusts an address.
fn is_of_source(op: &Op) -> bool {
    match op {
        Op::Pointer { .. }
        | Op::View { .. }
        | Op::AsyncBuffer { .. }
        | Op::AsyncCopy { .. }
        | Op::AsyncCommitGroup { .. }
        | Op::AsyncWait { .. }
        | Op::LocalLoad { .. }
        | Op::IssueLoads { .. }
        | Op::Convert { .. }
        | Op::IfAny { .. }
        | Op::AnyInWarp { .. }
        | Op::LaunchValue { .. }
        | Op::Worker { .. }
        | Op::NumWorkers { .. }
        | Op::RunsIf { .. }
        | Op::Roles { .. }
        | Op::Ring { .. }
        | Op::RingAcquire { .. }
        | Op::CopyBlock { .. }
        | Op::StoreBlock { .. }
        | Op::RingWait { .. }
        | Op::ReadBlock { .. }
        | Op::RingRelease { .. }
        | Op::RingReleasePrevious { .. }
        | Op::WarpgroupWait { .. }
        | Op::WarpgroupDot { .. }
        | Op::Report { .. } => false,
        Op::Load { in_bounds, partial, shifted, align, evict, .. } | Op::Store { in_bounds, partial, shifted, align, evict, .. } => {
            !(*in_bounds || *partial || *shifted) && *align == 0 && *evict != Evict::FirstIfSmall
        }
        Op::Atomic { in_bounds, align, .. } => !in_bounds && *align == 0,
        Op::If { rare, .. } => !rare,
        Op::For { remainder, guarded, .. } => !(*remainder || *guarded),
        _ => true,
    }
}

impl RecordedLaunch {
    /// A launch of these parts.
    ///
    /// # Errors
    /// [`OpsError::NotAKernel`] if the key or the arguments are not those of the kernel.
    pub fn of_parts(
        kernel: &'static Kernel,
        key: Vec<u64>,
        args: Vec<RecordedArg>,
        grid: [Dim; 3],
        location: Site,
    ) -> Result<RecordedLaunch> {
        let refused = |reason: String| Err(Error::Ops(OpsError::NotAKernel { name: kernel.name().to_owned(), reason }));
        let func = kernel.parsed()?;
        if func.unchecked || kernel.prints() {
            return refused("it is `unchecked`, or prints".to_owned());
        }
        if key.len() != func.types.len() + func.consts.len() || args.len() != kernel.params().len() {
            return refused("a launch has another number of arguments or generics".to_owned());
        }
        let words: usize = kernel.params().iter().map(|param| param.kind.words()).sum();
        if words > MOST_WORDS || key.len() > MOST_KEYS {
            return refused(format!(
                "its arguments take {words} words and its generics {}: at most {MOST_WORDS} and {MOST_KEYS} are possible",
                key.len()
            ));
        }
        let dtype_of = |elem: &Elem| match elem {
            Elem::Dtype(dtype) => Some(*dtype),
            Elem::Param(name) => {
                let at = func.types.iter().position(|param| param.name == *name)?;
                Dtype::from_code(key[at]).filter(|dtype| func.types[at].choices.contains(dtype))
            }
        };
        if let Some(reason) = wrong_word(func, &key) {
            return refused(reason);
        }
        let mut at = 0;
        for (param, arg) in kernel.params().iter().zip(&args) {
            let ty = func.ty(func.params[at].value);
            at += ir_params(param.name, param.kind).len();
            let dtype = dtype_of(ty.elem());
            let writes = matches!(param.kind, ParamKind::PointerMut | ParamKind::ViewMut(_));
            let fits = match (arg, param.kind) {
                (RecordedArg::Tensor { .. }, ParamKind::Scalar) => false,
                (RecordedArg::Tensor { dtype: own, writes: own_writes, .. }, _) => Some(*own) == dtype && *own_writes == writes,
                (RecordedArg::Word { word, .. }, ParamKind::Scalar) => {
                    // A `bool` is one bit.
                    dtype.is_some_and(|dtype| dtype.bits() == 64 || word >> dtype.bits() == 0)
                }
                (RecordedArg::Dim { ty, .. }, ParamKind::Scalar) => Some(ty.dtype()) == dtype,
                _ => false,
            };
            if !fits {
                return refused(format!("argument `{}` of a launch has another type", param.name));
            }
        }
        Ok(RecordedLaunch { kernel, key, args, grid, tuning: None, is_checked: false, location })
    }

    /// The keys and schedules of the variants that a run may take. Without configurations, any schedule serves.
    pub fn code(&self) -> Vec<(&[u64], Option<Schedule>)> {
        match &self.tuning {
            Some(tuning) => tuning.configs().iter().map(|config| (&*config.key, Some(config.schedule))).collect(),
            None => vec![(&*self.key, None)],
        }
    }

    /// The kernel.
    pub fn of_kernel(&self) -> &'static Kernel {
        self.kernel
    }

    /// The text of the kernel's IR, which is generic over types and constants, without source locations.
    pub fn ir_without_locations(&self) -> String {
        ir_without_locations(self.kernel.ir)
    }

    /// The words for the kernel's types and constants.
    pub fn key(&self) -> &[u64] {
        &self.key
    }

    /// The arguments, in the order of the kernel's parameters.
    pub fn arguments(&self) -> &[RecordedArg] {
        &self.args
    }
}

/// What is wrong with a key: also types and constants that no parameter has are words of their kind.
pub(crate) fn wrong_word(func: &ir::Function, key: &[u64]) -> Option<String> {
    let (types, consts) = key.split_at_checked(func.types.len())?;
    let is_type = |(param, code): &(&ir::TypeParam, &u64)| Dtype::from_code(**code).is_some_and(|dtype| param.choices.contains(&dtype));
    if let Some((param, _)) = func.types.iter().zip(types).find(|pair| !is_type(pair)) {
        return Some(format!("a launch names no dtype that `{}` can be", param.name));
    }
    let (param, _) = func.consts.iter().zip(consts).find(|(param, word)| !is_word_of(**word, param.dtype))?;
    Some(format!("a launch gives `{}` a value that no `{}` has", param.name, param.dtype))
}

/// Whether a word of a key is a value of a constant: integers with a sign are extended to the word, and all other values have zeros above their bits.
fn is_word_of(word: u64, dtype: Dtype) -> bool {
    let unused = 64 - dtype.bits();
    let bits = word << unused;
    if dtype.is_signed_int() { (bits.cast_signed() >> unused).cast_unsigned() == word } else { bits >> unused == word }
}
