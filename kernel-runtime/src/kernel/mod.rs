//! A kernel: its IR, the PTX that was compiled with the program, and the functions that were loaded or compiled since.

pub(crate) mod append_only_table;
pub(crate) mod background;
pub(crate) mod cpu;
pub(crate) mod entries;
pub(crate) mod gpu;
mod key_words;
pub(crate) mod launch_values;
pub(crate) mod literals;
mod load;
pub(crate) mod module;
pub(crate) mod on_demand;
pub(crate) mod parts;
pub(crate) mod persistent;
pub(crate) mod prepare;
pub(crate) mod tensor_map;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kernel_cpu::Program;
#[cfg(feature = "jit")]
use kernel_lang::Options;
use kernel_lang::analysis::updates;
use kernel_lang::backend::ptx::Site;
use kernel_lang::target::{Architecture, Target};
use kernel_lang::{Bindings, COMPILER, Schedule, ir};

use crate::kernel::append_only_table::Grown;
use crate::kernel::background::Pending;
use crate::kernel::gpu::{Gpu, Image};
#[cfg(not(feature = "jit"))]
use crate::kernel::key_words::listing;
use crate::kernel::key_words::{bindings, parameters, quoted, written_bindings};
use crate::kernel::parts::BuiltParts;
use crate::launch::fact::{Fact, Key};
use crate::{Error, Result, cache, launch::prints};

/// A kernel, as `#[kernel]` generates it for a function: a static that all launches of the kernel share.
pub struct Kernel {
    name: &'static str,
    ir: &'static str,
    schedule: Schedule,
    params: &'static [Param],
    variants: &'static [Variant],
    facts: &'static [Fact],
    prints: bool,
    /// For a kernel of a package, what records of tuning know of the kernel of the program that wrote it.
    built: Option<BuiltParts>,
    /// For a kernel of a package, the machine code of each variant; otherwise empty.
    machine_code: &'static [&'static [MachineCode]],
    /// Whether its author is trusted. Launches of other kernels are not tuned.
    is_trusted: bool,
    parsed: OnceLock<ir::Function>,
    cuda: Tables<module::Loaded>,
    #[cfg(feature = "sim")]
    sim: Tables<crate::sim::Loaded>,
    programs: Grown<Arc<Program>>,
    /// Held while an embedded variant is loaded, so that each is loaded once.
    loading: Mutex<()>,
    /// Held while any thread compiles.
    compiling: Mutex<()>,
}

/// A parameter of a kernel, in the order of its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name in the source.
    pub name: &'static str,
    /// The kind of argument that it takes.
    pub kind: ParamKind,
}

/// The kind of argument that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// A tensor that the kernel reads.
    Pointer,
    /// A tensor that the kernel writes.
    PointerMut,
    /// A tensor with this number of axes that the kernel reads.
    View(usize),
    /// A tensor with this number of axes that the kernel writes.
    ViewMut(usize),
    /// A scalar.
    Scalar,
}

impl ParamKind {
    /// The number of its argument words.
    pub(crate) fn words(self) -> usize {
        match self {
            ParamKind::Pointer | ParamKind::PointerMut => 2,
            ParamKind::View(rank) | ParamKind::ViewMut(rank) => 1 + 2 * rank,
            ParamKind::Scalar => 1,
        }
    }
}

/// PTX of a kernel for some types, constants and schedule.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// A word for each type parameter, then one for each constant parameter. If the variant relies on facts about the arguments, a last word has a
    /// bit for each such fact.
    pub key: &'static [u64],
    /// The schedule: how the work is distributed over threads and time.
    pub schedule: Schedule,
    /// The architecture, such as `sm_80` or `sm_90a`.
    pub target: &'static str,
    /// The name of the function in the PTX.
    pub entry: &'static str,
    /// The dynamic shared memory of one CTA.
    pub shared_bytes: u32,
    /// The text of the PTX.
    pub ptx: &'static str,
}

/// Machine code of a variant, which a package may have beside its PTX.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineCode {
    pub(crate) architecture: Architecture,
    pub(crate) bytes: &'static [u8],
}

/// One table for each GPU of one kind.
pub(crate) type Tables<L> = OnceLock<Box<[OnceLock<Table<L>>]>>;

/// The variants of a kernel that one GPU can run.
pub(crate) struct Table<L: 'static> {
    /// The embedded variants for this GPU, the best target first.
    embedded: Box<[(&'static Variant, OnceLock<L>)]>,
    /// Indices into `embedded`, by schedule and key, and by the key alone.
    indices: Grown<usize>,
    /// Variants that were compiled in process, for the kernel's own schedule or that of a configuration.
    compiled: Grown<L>,
    /// Variants that other threads compile, or could not compile.
    pub(crate) pending: Grown<Pending<L>>,
    checked: Grown<Arc<Checked<L>>>,
    /// See [`Kernel::content`].
    content: OnceLock<String>,
}

/// A function that reports accesses outside tensors. It takes one additional parameter.
pub(crate) struct Checked<L> {
    pub(crate) loaded: L,
    /// The sites to which the numbers in a report refer.
    pub(crate) sites: Vec<Site>,
}

impl<L> Table<L> {
    /// The function that earlier launches with this key have run.
    #[inline]
    pub(crate) fn loaded(&self, key: &[u64], schedule: Option<Schedule>) -> Option<&L> {
        match self.indices.find(schedule, key) {
            Some(index) => self.embedded.get(*index)?.1.get(),
            None => self.compiled.find(schedule, key),
        }
    }
}

impl Kernel {
    /// The kernel of this name, with its IR text and the variants that were compiled with the program.
    ///
    /// # Safety
    /// - Each variant's PTX takes the argument words of `params`, and does what the IR does for its key.
    /// - The PTX and the IR access only memory of the arguments, inside their lengths, and write only arguments that are passed for writing. An
    ///   `unchecked` kernel may leave this to the caller of its launcher, which is an `unsafe fn`.
    /// - [`Kernel::specializing`] is given the facts to which the variants' keys refer.
    /// - [`Kernel::printing`] is called if the kernel takes a print buffer.
    ///
    /// ```compile_fail,E0133
    /// use kernel_runtime::private::{Kernel, Schedule};
    /// static KERNEL: Kernel = Kernel::new("k", "", Schedule::DEFAULT, &[], &[]);
    /// ```
    pub const unsafe fn new(
        name: &'static str,
        ir: &'static str,
        schedule: Schedule,
        params: &'static [Param],
        variants: &'static [Variant],
    ) -> Kernel {
        Kernel {
            name,
            ir,
            schedule,
            params,
            variants,
            facts: &[],
            prints: false,
            built: None,
            machine_code: &[],
            is_trusted: true,
            parsed: OnceLock::new(),
            cuda: OnceLock::new(),
            #[cfg(feature = "sim")]
            sim: OnceLock::new(),
            programs: Grown::new(),
            loading: Mutex::new(()),
            compiling: Mutex::new(()),
        }
    }

    /// The same kernel, with a `device_print!`: it takes a print buffer after its arguments.
    #[must_use]
    pub const fn printing(mut self) -> Kernel {
        self.prints = true;
        self
    }

    /// The same kernel, with facts on which some variants rely.
    ///
    /// # Panics
    /// If there are more facts than a word has bits.
    #[must_use]
    pub const fn specializing(mut self, facts: &'static [Fact]) -> Kernel {
        assert!(facts.len() <= 64, "a word has a bit for each fact");
        self.facts = facts;
        self
    }

    /// The facts on which its variants may rely.
    #[inline]
    pub(crate) fn facts(&self) -> &'static [Fact] {
        self.facts
    }

    /// Returns whether it contains a `device_print!`.
    #[inline]
    pub(crate) fn prints(&self) -> bool {
        self.prints
    }

    /// The name in the source.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The IR, generic over types and constants.
    pub fn ir(&self) -> &'static str {
        self.ir
    }

    /// The parameters.
    pub fn params(&self) -> &'static [Param] {
        self.params
    }

    /// The variants that were compiled with the program.
    pub fn variants(&self) -> &'static [Variant] {
        self.variants
    }

    /// Whether its author is trusted.
    pub(crate) fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// The schedule of a launch without a configuration.
    pub(crate) fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The functions that CUDA GPUs have loaded of it.
    #[inline]
    pub(crate) fn cuda_tables(&self) -> &Tables<module::Loaded> {
        &self.cuda
    }

    /// The functions that simulated GPUs have loaded of it.
    #[cfg(feature = "sim")]
    pub(crate) fn sim_tables(&self) -> &Tables<crate::sim::Loaded> {
        &self.sim
    }

    /// The function that a GPU runs for this key: an embedded variant, or one that is compiled now.
    #[inline]
    pub(crate) fn on_gpu<G: Gpu>(&self, gpu: &G, key: &[u64], schedule: Option<Schedule>) -> Result<&G::Loaded> {
        let table = self.table(gpu);
        if let Some(loaded) = table.loaded(key, schedule) {
            return Ok(loaded);
        }
        self.ready(gpu, table, key, schedule).unwrap_or_else(|| self.compile(gpu, table, key, schedule))
    }

    /// The available variant for this key. Loads it if it is not loaded yet.
    #[cold]
    pub(crate) fn ready<'t, G: Gpu>(
        &self,
        gpu: &G,
        table: &'t Table<G::Loaded>,
        key: &[u64],
        schedule: Option<Schedule>,
    ) -> Option<Result<&'t G::Loaded>> {
        match table.indices.find(schedule, key).map(|index| &table.embedded[*index]) {
            Some((variant, cell)) => match cell.get() {
                Some(loaded) => Some(Ok(loaded)),
                None => Some(self.load(gpu, variant, cell)),
            },
            None => table.compiled.find(schedule, key).map(Ok),
        }
    }

    /// The best variant that can run without compiling. Among the variants that were built with the program for these types and constants, it is the
    /// one that relies on the most facts that hold, and on no others. If none was built, it is the variant that was compiled for any arguments.
    pub(crate) fn serving<'t, G: Gpu, const N: usize>(
        &self,
        gpu: &G,
        table: &'t Table<G::Loaded>,
        key: &Key<N>,
        schedule: Option<Schedule>,
    ) -> Option<Result<&'t G::Loaded>> {
        let fits = |variant: &Variant| {
            let (words, facts) = variant.key.split_at_checked(N)?;
            let facts = facts.first().copied().unwrap_or(0);
            let is_it = words == key.general() && schedule.is_none_or(|schedule| schedule == variant.schedule);
            (is_it && facts & !key.facts() == 0).then_some(facts.count_ones())
        };
        let count = |index: usize| fits(table.embedded[index].0).map(|count| (count, std::cmp::Reverse(index)));
        match (0..table.embedded.len()).filter_map(count).max() {
            Some((_, std::cmp::Reverse(index))) => self.ready(gpu, table, table.embedded[index].0.key, schedule),
            None => table.compiled.find(schedule, key.general()).map(Ok),
        }
    }

    /// The function that reports accesses outside tensors. The first checked launch compiles it.
    pub(crate) fn checked_on_gpu<G: Gpu>(&self, gpu: &G, key: &[u64], schedule: Option<Schedule>) -> Result<Arc<Checked<G::Loaded>>> {
        let table = self.table(gpu);
        let _guard = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(checked) = table.checked.find(schedule, key) {
            return Ok(checked.clone());
        }
        let (loaded, sites) = self.build(gpu, key, schedule, true)?;
        Ok(table.checked.keep(schedule, key, Arc::new(Checked { loaded, sites })).clone())
    }

    /// A hash of the PTX that was built with the program for a GPU. It excludes source locations, because editing a comment moves them.
    pub(crate) fn content<G: Gpu>(&self, gpu: &G) -> &str {
        let table = self.table(gpu);
        table.content.get_or_init(|| match &self.built {
            Some(built) => built.content(gpu),
            None => content(table.embedded.iter().map(|(variant, _)| *variant)),
        })
    }

    /// What records of tuning know of the kernel, for a package with the wanted variants.
    pub(crate) fn built_parts(&self, is_wanted: impl Fn(&Variant) -> bool) -> BuiltParts {
        let count = |most: usize| self.variants.iter().take(most).filter(|variant| is_wanted(variant)).count();
        if let Some(built) = &self.built {
            return BuiltParts { count: count(built.count), contents: built.contents.clone(), records: String::new() };
        }
        let content = |gpu: Target| {
            let (major, minor) = (gpu.number() / 10, gpu.number() % 10);
            let usable = usable(self.variants, |target| target.runs_on(major.cast_signed(), minor.cast_signed()));
            (gpu.to_string(), content(usable.into_iter()))
        };
        BuiltParts { count: count(usize::MAX), contents: Target::ALL.into_iter().map(content).collect(), records: String::new() }
    }

    /// The text of a file with the results of tuning that its package has for it; empty for a kernel of the program.
    pub(crate) fn packed_records(&self) -> &str {
        self.built.as_ref().map_or("", |built| &built.records)
    }

    /// The same for code that is compiled in process: a hash of the compiler's version and sources, and of the IR without source locations.
    pub(crate) fn source(&self) -> String {
        let lines = self.ir.lines().flat_map(|line| [without_source_location(line).as_bytes(), b"\n"]);
        cache::hash(&std::iter::once(COMPILER.as_bytes()).chain(lines).collect::<Vec<_>>())
    }

    /// Returns whether exactly this variant was built with the program, so that nothing is compiled for it.
    pub(crate) fn is_built<G: Gpu>(&self, gpu: &G, key: &[u64], schedule: Schedule) -> bool {
        let table = self.table(gpu);
        let is_built = |variant: &Variant| match &self.built {
            Some(built) => self.variants.iter().take(built.count).any(|own| std::ptr::eq(own, variant)),
            None => true,
        };
        table.indices.find(Some(schedule), key).is_some_and(|index| is_built(table.embedded[*index].0))
    }

    #[inline]
    pub(crate) fn table<G: Gpu>(&self, gpu: &G) -> &Table<G::Loaded> {
        let tables = gpu.tables(self);
        let Some(table) = tables.get().and_then(|tables| tables.get(gpu.number())?.get()) else { return self.open_table(gpu, tables) };
        table
    }

    #[cold]
    fn open_table<'t, G: Gpu>(&self, gpu: &G, tables: &'t Tables<G::Loaded>) -> &'t Table<G::Loaded> {
        let tables = tables.get_or_init(|| (0..G::count()).map(|_| OnceLock::new()).collect());
        tables[gpu.number()].get_or_init(|| {
            let usable = usable(self.variants, |target| runs_on(target, gpu));
            let indices = Grown::new();
            for (index, variant) in usable.iter().enumerate() {
                // The table keeps the first entry, which is the best target.
                indices.keep(Some(variant.schedule), variant.key, index);
                indices.keep(None, variant.key, index);
            }
            let embedded = usable.into_iter().map(|variant| (variant, OnceLock::new())).collect();
            Table { embedded, indices, compiled: Grown::new(), pending: Grown::new(), checked: Grown::new(), content: OnceLock::new() }
        })
    }

    #[cold]
    fn load<'t, G: Gpu>(&self, gpu: &G, variant: &Variant, cell: &'t OnceLock<G::Loaded>) -> Result<&'t G::Loaded> {
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = cell.get() {
            return Ok(loaded);
        }
        let image = Image {
            kernel: self.name,
            entry: variant.entry,
            ptx: variant.ptx,
            machine_code: self.machine_code(variant, gpu.compute_capability()),
            schedule: variant.schedule,
            shared_bytes: variant.shared_bytes,
        };
        let loaded = gpu.load(&image)?;
        Ok(cell.get_or_init(|| loaded))
    }

    /// The machine code of a variant for devices of that compute capability, the latest architecture first.
    fn machine_code(&self, variant: &Variant, (major, minor): (i32, i32)) -> Option<&'static [u8]> {
        let number = self.variants.iter().position(|own| std::ptr::eq(own, variant))?;
        let usable = self.machine_code.get(number)?.iter().filter(|code| code.architecture.runs_on(major, minor));
        usable.max_by_key(|code| code.architecture).map(|code| code.bytes)
    }

    /// Compiles for this key, or waits for the thread that compiles.
    #[cold]
    pub(crate) fn compile<'t, G: Gpu>(
        &self,
        gpu: &G,
        table: &'t Table<G::Loaded>,
        key: &[u64],
        schedule: Option<Schedule>,
    ) -> Result<&'t G::Loaded> {
        self.compile_and(gpu, table, key, schedule, |_| Ok(()))
    }

    /// The same. `prepare` is called before launches find the variant.
    pub(crate) fn compile_and<'t, G: Gpu>(
        &self,
        gpu: &G,
        table: &'t Table<G::Loaded>,
        key: &[u64],
        schedule: Option<Schedule>,
        prepare: impl FnOnce(&G::Loaded) -> Result<()>,
    ) -> Result<&'t G::Loaded> {
        let _guard = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = table.compiled.find(schedule, key) {
            return Ok(loaded);
        }
        let (loaded, _) = self.build(gpu, key, schedule, false)?;
        prepare(&loaded)?;
        Ok(table.compiled.keep(schedule, key, loaded))
    }

    /// Without the compiler, no variant can be added to those that were built.
    #[cfg(not(feature = "jit"))]
    fn build<G: Gpu>(&self, gpu: &G, key: &[u64], schedule: Option<Schedule>, checked: bool) -> Result<(G::Loaded, Vec<Site>)> {
        let func = self.parsed()?;
        let what = if checked { "a `.checked()` launch with " } else { "" };
        let parameters = format!("{what}{}", quoted(&parameters(func, key, self.facts)));
        let Schedule { num_warps, .. } = schedule.unwrap_or(self.schedule);
        let list = if checked { String::new() } else { listing(func, key) };
        Err(Error::NotBuilt { kernel: self.name, device: gpu.device(), parameters, num_warps, list })
    }

    /// Compiles and loads.
    #[cfg(feature = "jit")]
    fn build<G: Gpu>(&self, gpu: &G, key: &[u64], schedule: Option<Schedule>, checked: bool) -> Result<(G::Loaded, Vec<Site>)> {
        let func = self.parsed()?;
        let schedule = schedule.unwrap_or(self.schedule);
        let target = Target::ALL.into_iter().rev().find(|target| runs_on(*target, gpu));
        let capability = gpu.compute_capability();
        let target = target.ok_or(Error::TooOld { kernel: self.name, device: gpu.device(), capability })?;
        let options = Options { schedule, checked, ..Options::new(bindings(func, key, self.facts), target) };
        let compiled = cache::compile(self.name, self.ir, &options, || {
            kernel_lang::compile(func, &options).map_err(|diagnostics| self.compile_error(key, diagnostics.render(&func.files)))
        })?;
        self.tell_notes(func, &options.bindings, Some(target), key);
        let image = Image {
            kernel: self.name,
            entry: &compiled.entry,
            ptx: &compiled.ptx,
            machine_code: None,
            schedule,
            shared_bytes: compiled.shared_bytes,
        };
        Ok((gpu.load(&image)?, compiled.sites))
    }

    /// The program that the CPU runs for this key.
    pub(crate) fn on_cpu(&self, key: &[u64]) -> Result<Arc<Program>> {
        if let Some(program) = self.programs.find(None, key) {
            return Ok(program.clone());
        }
        self.compile_for_cpu(key)
    }

    /// Whether the CPU has run this key.
    pub(crate) fn has_program(&self, key: &[u64]) -> bool {
        self.programs.find(None, key).is_some()
    }

    #[cold]
    fn compile_for_cpu(&self, key: &[u64]) -> Result<Arc<Program>> {
        let _guard = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = self.programs.find(None, key) {
            return Ok(program.clone());
        }
        let func = self.parsed()?;
        let program = kernel_cpu::compile(func, &bindings(func, key, self.facts))
            .map_err(|diagnostics| self.compile_error(key, diagnostics.render(&func.files)))?;
        self.tell_notes(func, &bindings(func, key, self.facts), None, key);
        Ok(self.programs.keep(None, key, Arc::new(program)).clone())
    }

    /// The kernel for the types and constants of a key, as it was written.
    pub(crate) fn specialized(&self, key: &[u64]) -> Result<ir::Function> {
        let func = self.parsed()?;
        kernel_lang::specialized(func, &bindings(func, key, self.facts))
            .map_err(|diagnostics| self.compile_error(key, diagnostics.render(&func.files)))
    }

    /// The error of a thread that panicked while it compiled.
    pub(crate) fn crashed(&self, key: &[u64]) -> Error {
        self.compile_error(key, "error: the compiler crashed on this kernel\nhelp: this is a defect of the compiler".to_owned())
    }

    /// Shows the output of `static_print!` for values for which no build has shown it.
    fn tell_notes(&self, func: &ir::Function, bindings: &Bindings, target: Option<Target>, key: &[u64]) {
        let general = func.types.len() + func.consts.len();
        if self.variants.iter().any(|variant| variant.key.get(..general) == key.get(..general)) {
            return;
        }
        for (loc, text) in kernel_lang::notes(func, bindings, target) {
            let file = func.files.get(usize::from(loc.file)).map_or("kernel", |file| file);
            prints::show(format!("{file}:{}: {text}", loc.line));
        }
    }

    /// For each tensor parameter, in order: whether the kernel both reads and writes it. Empty if that is unknown.
    pub(crate) fn updates(&self) -> Vec<bool> {
        self.parsed().map_or_else(|_| Vec::new(), updates::compute)
    }

    /// The generic kernel, parsed from its IR text.
    pub(crate) fn parsed(&self) -> Result<&ir::Function> {
        if let Some(func) = self.parsed.get() {
            return Ok(func);
        }
        let func = ir::parse(self.ir).map_err(|error| Error::Compile {
            kernel: self.name,
            parameters: "any parameters".to_owned(),
            diagnostics: format!("error: its embedded IR cannot be read: {error}"),
        })?;
        Ok(self.parsed.get_or_init(|| func))
    }

    /// PTX for this key and schedule, and any arguments.
    #[cfg(feature = "jit")]
    pub(crate) fn compiled(&self, key: &[u64], schedule: Schedule, target: Target) -> Result<kernel_lang::Compiled> {
        let func = self.parsed()?;
        let options = Options { schedule, ..Options::new(bindings(func, key, &[]), target) };
        kernel_lang::compile(func, &options).map_err(|diagnostics| self.compile_error(key, diagnostics.render(&func.files)))
    }

    /// The types and constants of a key, such as `T = f32, BLOCK_SIZE = 1024`.
    pub fn written_key(&self, key: &[u64]) -> String {
        self.parameters(key)
    }

    /// The types and constants of a key, such as `T = f32, BLOCK_SIZE = 1024`.
    pub(crate) fn parameters(&self, key: &[u64]) -> String {
        self.parsed().map_or_else(|_| String::new(), |func| parameters(func, key, self.facts))
    }

    fn compile_error(&self, key: &[u64], diagnostics: String) -> Error {
        let parameters = quoted(&self.parameters(key));
        Error::Compile { kernel: self.name, parameters, diagnostics: diagnostics.trim_end().to_owned() }
    }
}

/// The variants for targets that a GPU runs, the best target first.
fn usable(variants: &'static [Variant], runs: impl Fn(Target) -> bool) -> Vec<&'static Variant> {
    let target = |variant: &'static Variant| Some((variant.target.parse::<Target>().ok()?, variant));
    let mut usable: Vec<_> = variants.iter().filter_map(target).filter(|(target, _)| runs(*target)).collect();
    usable.sort_by_key(|(target, _)| std::cmp::Reverse(*target));
    usable.into_iter().map(|(_, variant)| variant).collect()
}

/// A hash of the PTX of variants, see [`Kernel::content`].
fn content<'v>(variants: impl Iterator<Item = &'v Variant>) -> String {
    let mut content: Vec<&[u8]> = Vec::new();
    for variant in variants {
        content.push(variant.target.as_bytes());
        content.extend(variant.ptx.lines().filter(|line| !is_source_location(line)).map(str::as_bytes));
    }
    cache::hash(&content)
}

impl BuiltParts {
    /// The hash for the target that a GPU prefers.
    fn content(&self, gpu: &impl Gpu) -> String {
        let target = |name: &String| name.parse::<Target>().ok().filter(|target| runs_on(*target, gpu));
        let best = self.contents.iter().filter_map(|(name, content)| Some((target(name)?, content))).max_by_key(|(target, _)| *target);
        best.map_or_else(String::new, |(_, content)| content.clone())
    }
}

/// Returns whether the line of PTX is empty or only states a source location.
fn is_source_location(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || [".loc", ".file", "//"].iter().any(|start| line.starts_with(start))
}

/// The line of IR without its source location, such as ` @3:9`, at its end.
fn without_source_location(line: &str) -> &str {
    let is_source_location = |location: &str| location.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    line.rsplit_once(" @").filter(|(_, location)| is_source_location(location)).map_or(line, |(op, _)| op)
}

fn runs_on(target: Target, gpu: &impl Gpu) -> bool {
    let (major, minor) = gpu.compute_capability();
    target.runs_on(major, minor)
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let variants = self.variants.len();
        f.debug_struct("Kernel").field("name", &self.name).field("variants", &variants).finish_non_exhaustive()
    }
}
