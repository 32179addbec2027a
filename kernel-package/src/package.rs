//! Packages: one file with a plan, its kernels and its weights.
//!
//! | entry | contents |
//! |---|---|
//! | `manifest.json` | the format, the kernels with their variants, and the BLAKE3 hash of every other entry |
//! | `plan.json` | the plan, see [`crate::json`] |
//! | `plan-cpu.json` | the plan for the CPU, if ops have functions of their own for it |
//! | `kernels/0-silu.ir` | the IR of a kernel, generic over types and constants |
//! | `kernels/0-silu-1.ptx` | a variant |
//! | `weights.safetensors` | the constants |

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use kernel_runtime::ops::Tensor;
use kernel_runtime::ops::parts::{BuiltParts, FactParts, Kernel, KernelParts, KnownParts, ParamKind, Schedule, VariantParts};
use kernel_runtime::ops::recorder::{RecordedLaunch, RecordedTuning, TensorType};
use kernel_runtime::{Device, Target};
use serde_json::{Value as Json, json};

use crate::error::{PackageError, RunError};
use crate::json::{self, ReadConstant, fail, hex, list, text, unhex};
use crate::limits::{BYTES_PER_TEXT, Bounds, Limits};
use crate::plan::{Constant, NodeOp, Plan};
use crate::session::Session;
use crate::{archive, files, weights};

type Result<T, E = PackageError> = std::result::Result<T, E>;

/// The format that this version writes and reads.
const FORMAT: u64 = 1;
const MANIFEST: &str = "manifest.json";
const PLAN: &str = "plan.json";
const PLAN_ON_CPU: &str = "plan-cpu.json";
const WEIGHTS: &str = "weights.safetensors";
/// The entries that are JSON.
const JSON: [&str; 3] = [MANIFEST, PLAN, PLAN_ON_CPU];

/// Writes packages of a plan.
#[derive(Debug)]
pub struct PackageWriter<'p> {
    plan: &'p Plan,
    targets: Vec<Target>,
}

impl<'p> PackageWriter<'p> {
    /// A writer for this plan. Each kernel has the variants that were built with the program. A kernel without a variant for its types and constants is compiled.
    pub fn new(plan: &'p Plan) -> PackageWriter<'p> {
        PackageWriter { plan, targets: vec![Target::SM_80] }
    }

    /// The architectures for which kernels are compiled if no variant of them was built; `sm_80` by default, which later GPUs run, too.
    #[must_use]
    pub fn targets(mut self, targets: impl IntoIterator<Item = Target>) -> PackageWriter<'p> {
        self.targets = targets.into_iter().collect();
        self
    }

    /// Writes the file. If a file exists, it is replaced in one step: a reader sees the old one or the new one.
    ///
    /// # Errors
    /// [`PackageError::File`] for the path, and those of [`PackageWriter::to_bytes`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        files::replace(path.as_ref(), &self.to_bytes()?)
    }

    /// The bytes of the file. Equal programs give equal bytes.
    ///
    /// # Errors
    /// [`PackageError::NoCode`] for a kernel that has no code and cannot be compiled, and errors of copies from the device.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let kernels = self.kernels()?;
        for node in self.plans().flat_map(|plan| &plan.nodes) {
            if let NodeOp::Launch(launch) = &node.op
                && let Some(Err(not_packed)) = launch.tuning().map(RecordedTuning::parts)
            {
                return Err(PackageError::NotPacked { kernel: launch.kernel(), reason: not_packed, location: node.location.clone() });
            }
        }
        let number = |kernel: &'static Kernel| kernels.iter().position(|(known, _)| std::ptr::eq(*known, kernel)).unwrap_or(usize::MAX);
        let mut entries = vec![(PLAN.to_owned(), pretty(&json::write(self.plan, &self.plan.constant_names(), &number)))];
        if let Some(on_cpu) = &self.plan.on_cpu {
            let names = self.plan.constant_names_on_cpu(on_cpu);
            entries.push((PLAN_ON_CPU.to_owned(), pretty(&json::write(on_cpu, &names, &number))));
        }
        let mut list = Vec::new();
        for (number, (_, parts)) in kernels.iter().enumerate() {
            list.push(write_kernel(number, parts, &mut entries));
        }
        entries.push((WEIGHTS.to_owned(), self.weights()?));
        let hashes: serde_json::Map<String, Json> =
            entries.iter().map(|(name, bytes)| (name.clone(), blake3::hash(bytes).to_hex().to_string().into())).collect();
        let manifest = json!({
            "format": FORMAT,
            "written_by": concat!("galatea ", env!("CARGO_PKG_VERSION")),
            "program": self.plan.name,
            "kernels": list,
            "blake3": hashes,
        });
        entries.insert(0, (MANIFEST.to_owned(), pretty(&manifest)));
        for (name, bytes) in entries.iter().filter(|(name, _)| JSON.contains(&&**name)) {
            json::check_size(name, bytes)?;
        }
        archive::write(&entries)
    }

    /// The plan, and that for the CPU if there is one.
    fn plans(&self) -> impl Iterator<Item = &'p Plan> {
        std::iter::once(self.plan).chain(self.plan.on_cpu.as_deref())
    }

    /// The kernels of the plans, each once, with the variants for the keys of its launches. The CPU runs the IR.
    fn kernels(&self) -> Result<Vec<(&'static Kernel, KernelParts)>> {
        let mut launches: Vec<(&'static Kernel, Vec<&RecordedLaunch>)> = Vec::new();
        for (plan, needs_code) in self.plans().zip([true, false]) {
            for node in &plan.nodes {
                let NodeOp::Launch(launch) = &node.op else { continue };
                let kernel = launch.of_kernel();
                match launches.iter_mut().find(|(known, _)| std::ptr::eq(*known, kernel)) {
                    Some((_, launches)) if needs_code => launches.push(launch),
                    Some(_) => {}
                    None => launches.push((kernel, if needs_code { vec![launch] } else { Vec::new() })),
                }
            }
        }
        let parts = |(kernel, launches): (&'static Kernel, Vec<&RecordedLaunch>)| {
            let code: Vec<_> = launches.iter().flat_map(|launch| launch.code()).map(|(key, _)| key).collect();
            let mut parts = KernelParts::of(kernel, &code, launches.iter().any(|launch| launch.tuning().is_some()));
            for launch in launches {
                for target in &self.targets {
                    add_code(&mut parts, launch, *target)?;
                }
            }
            Ok((kernel, parts))
        };
        launches.into_iter().map(parts).collect()
    }

    fn weights(&self) -> Result<Vec<u8>> {
        let tensors = |plan: &'p Plan| plan.constants.iter().map(|constant| constant.tensor.clone());
        let mut named: Vec<_> = self.plan.constant_names().into_iter().zip(tensors(self.plan)).collect();
        if let Some(on_cpu) = &self.plan.on_cpu {
            for (name, tensor) in self.plan.constant_names_on_cpu(on_cpu).into_iter().zip(tensors(on_cpu)) {
                if !named.iter().any(|(known, own)| *known == name && own.is_same(&tensor)) {
                    named.push((name, tensor));
                }
            }
        }
        weights::to_bytes(&named)
    }
}

/// Compiles what a launch runs on a target, if the parts lack it. A configuration that does not compile cannot run there, and others may.
fn add_code(parts: &mut KernelParts, launch: &RecordedLaunch, target: Target) -> Result<()> {
    // Later GPUs run what is compiled for `sm_80`, too.
    let serves = |variant: &VariantParts| variant.target == target.to_string() || variant.target == Target::SM_80.to_string();
    let (mut has_code, mut failure) = (false, None);
    for (key, schedule) in launch.code() {
        let is_of =
            |variant: &VariantParts| variant.key == key && serves(variant) && schedule.is_none_or(|schedule| variant.schedule == schedule);
        if !parts.variants.iter().any(is_of) {
            match KernelParts::compile(launch.of_kernel(), key, schedule, target) {
                Ok(variant) => parts.variants.push(variant),
                Err(error) => {
                    failure.get_or_insert((key, error));
                    continue;
                }
            }
        }
        has_code = true;
    }
    match failure {
        Some((key, error)) if !has_code => Err(PackageError::NoCode {
            kernel: launch.kernel().to_owned(),
            parameters: launch.of_kernel().written_key(key),
            help: error.to_string(),
        }),
        _ => Ok(()),
    }
}

/// JSON that people can read, and whose lines a tool can compare.
fn pretty(json: &Json) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(json).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn write_kernel(number: usize, parts: &KernelParts, entries: &mut Vec<(String, Vec<u8>)>) -> Json {
    let file = format!("kernels/{number}-{}", parts.name);
    let ir = format!("{file}.ir");
    entries.push((ir.clone(), parts.ir.clone().into_bytes()));
    let params: Vec<Json> = parts.params.iter().map(|(name, kind)| json!([name, kind_name(*kind)])).collect();
    let facts: Vec<Json> = parts
        .facts
        .iter()
        .map(|FactParts { param, known }| match known {
            KnownParts::Is(bits) => json!({ "param": param, "is": hex(*bits) }),
            KnownParts::MultipleOf(of) => json!({ "param": param, "multiple_of": hex(*of) }),
        })
        .collect();
    let mut variants = Vec::new();
    for (number, variant) in parts.variants.iter().enumerate() {
        let ptx = format!("{file}-{number}.ptx");
        entries.push((ptx.clone(), variant.ptx.clone().into_bytes()));
        let key: Vec<String> = variant.key.iter().map(|word| hex(*word)).collect();
        variants.push(json!({
            "key": key, "schedule": write_schedule(variant.schedule), "target": variant.target, "entry": variant.entry,
            "shared_bytes": variant.shared_bytes, "ptx": ptx,
        }));
    }
    let mut json = json!({ "name": parts.name, "ir": ir, "schedule": write_schedule(parts.schedule), "params": params, "facts": facts, "variants": variants });
    if let Some(BuiltParts { count, contents }) = &parts.built {
        json["built"] = json!({ "variants": count, "contents": contents });
    }
    json
}

fn kind_name(kind: ParamKind) -> String {
    match kind {
        ParamKind::Pointer => "pointer".to_owned(),
        ParamKind::PointerMut => "pointer_mut".to_owned(),
        ParamKind::View(rank) => format!("view{rank}"),
        ParamKind::ViewMut(rank) => format!("view_mut{rank}"),
        ParamKind::Scalar => "scalar".to_owned(),
    }
}

/// The most axes of a view.
const MOST_AXES: usize = 16;

fn kind_of(name: &str) -> Option<ParamKind> {
    let rank = |digits: &str| digits.parse().ok().filter(|rank| (1..=MOST_AXES).contains(rank));
    match name {
        "pointer" => Some(ParamKind::Pointer),
        "pointer_mut" => Some(ParamKind::PointerMut),
        "scalar" => Some(ParamKind::Scalar),
        _ => match name.strip_prefix("view_mut") {
            Some(digits) => rank(digits).map(ParamKind::ViewMut),
            None => rank(name.strip_prefix("view")?).map(ParamKind::View),
        },
    }
}

pub(crate) fn write_schedule(schedule: Schedule) -> Json {
    let Schedule { num_warps, num_ctas, num_stages, maxnreg } = schedule;
    json!({ "num_warps": num_warps, "num_ctas": num_ctas, "num_stages": num_stages, "maxnreg": maxnreg })
}

pub(crate) fn read_schedule(json: &Json) -> Result<Schedule> {
    let number =
        |name: &str| json[name].as_u64().and_then(|number| u32::try_from(number).ok()).ok_or_else(|| fail("a schedule is damaged"));
    let maxnreg = if json["maxnreg"].is_null() { None } else { Some(number("maxnreg")?) };
    Ok(Schedule { num_warps: number("num_warps")?, num_ctas: number("num_ctas")?, num_stages: number("num_stages")?, maxnreg })
}

/// A package: the file of a recorded program.
///
/// Its PTX runs as it is. So [open](Package::open) only packages whose writer you trust, as you would a library, and all others with
/// [`Package::open_untrusted`].
#[derive(Clone, Debug)]
pub struct Package {
    file: File,
    /// The limits of an untrusted package.
    limits: Option<Limits>,
    entries: HashMap<String, Range<usize>>,
    manifest: Json,
}

/// The bytes of a file.
#[derive(Clone, Debug)]
pub(crate) enum File {
    Mapped(Arc<memmap2::Mmap>),
    Bytes(Arc<[u8]>),
}

impl File {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            File::Mapped(map) => map,
            File::Bytes(bytes) => bytes,
        }
    }
}

impl Package {
    /// Opens a file. It is mapped into memory, and nothing is extracted. No other process may change it while it is open.
    ///
    /// # Errors
    /// [`PackageError::File`] if it cannot be read, [`PackageError::Malformed`] if it is no package or has changed since it was written, and
    /// [`PackageError::Format`] for another format.
    pub fn open(path: impl AsRef<Path>) -> Result<Package> {
        Package::of(File::Mapped(Arc::new(files::map(path.as_ref())?)), None)
    }

    /// A package of these bytes, such as those of `include_bytes!`.
    ///
    /// # Errors
    /// As [`Package::open`].
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Package> {
        Package::of(File::Bytes(bytes.into()), None)
    }

    /// Opens a file that a stranger wrote. It is read, not mapped, so that no other process can change it later.
    ///
    /// See [`Package::untrusted`].
    ///
    /// # Errors
    /// As [`Package::untrusted`], and [`PackageError::File`] if it cannot be read.
    pub fn open_untrusted(path: impl AsRef<Path>, limits: Limits) -> Result<Package> {
        Package::untrusted(files::read(path.as_ref(), limits)?, limits)
    }

    /// A package that a stranger wrote. Whatever its bytes are, its program reads and writes only its own tensors, and takes no more memory and time than the limits.
    ///
    /// PTX is ignored: each kernel is verified and compiled from its IR when the package is [loaded](Package::load), for a GPU by the feature `jit`. Kernels with
    /// `inline_ptx!` or addresses of tensors are refused. Records of tuning are ignored, too, and nothing is tuned: a launch with configurations runs the first
    /// one that compiles. Memory of a GPU is filled with zeros before a kernel sees it, and no run keeps any. Session and plan differ from those of a trusted package in nothing else.
    ///
    /// Limits hold for [`Package::load`] and for runs of its session. On a GPU, the time of a run is not limited: no program can stop a kernel there. A
    /// [plan](Package::plan) has no limits.
    ///
    /// ```
    /// use kernel_package::{Limits, Package};
    ///
    /// let error = Package::untrusted(b"no zip file".to_vec(), Limits::new()).unwrap_err();
    /// assert!(error.to_string().starts_with("not a package: it has no end of a zip file"));
    /// ```
    ///
    /// # Errors
    /// As [`Package::from_bytes`], and [`RunError::MemoryLimit`] if reading takes more memory than the limit.
    pub fn untrusted(bytes: impl Into<Arc<[u8]>>, limits: Limits) -> Result<Package> {
        Package::of(File::Bytes(bytes.into()), Some(limits))
    }

    fn of(file: File, limits: Option<Limits>) -> Result<Package> {
        let package = Package::unchecked(file, limits)?;
        match package.changed()?.first() {
            Some(name) => Err(fail(&format!("entry `{name}` has changed since it was written"))),
            None => Ok(package),
        }
    }

    /// The entries of a file with a manifest of this format. The checksums are not compared.
    pub(crate) fn unchecked(file: File, limits: Option<Limits>) -> Result<Package> {
        let entries = archive::read(file.bytes())?;
        // The manifest has the checksums of all other entries.
        let is_changed = |entry: &archive::Entry| crc32fast::hash(&file.bytes()[entry.bytes.clone()]) != entry.crc;
        if entries.iter().find(|entry| entry.name == MANIFEST).is_some_and(is_changed) {
            return Err(fail(&format!("entry `{MANIFEST}` has changed since it was written")));
        }
        let entries = entries.into_iter().map(|entry| (entry.name, entry.bytes)).collect();
        let mut package = Package { file, limits, entries, manifest: Json::Null };
        package.allow(package.read_bytes())?;
        package.manifest = json::parse(MANIFEST, package.entry(MANIFEST)?)?;
        match package.manifest["format"].as_u64() {
            Some(FORMAT) => Ok(package),
            Some(found) => Err(PackageError::Format { found, expected: FORMAT }),
            None => Err(fail("its manifest has no format")),
        }
    }

    /// Compares the bytes that an untrusted package needs with its limit.
    fn allow(&self, needed: u64) -> Result<()> {
        Ok(self.limits.map_or(Ok(()), |limits| limits.allow(needed))?)
    }

    /// What the file and its JSON take at most, in bytes.
    fn read_bytes(&self) -> u64 {
        let json: usize = JSON.into_iter().filter_map(|name| self.entries.get(name)).map(ExactSizeIterator::len).sum();
        let header = self.entry(WEIGHTS).map_or(0, weights::header_len);
        self.file_bytes() as u64 + BYTES_PER_TEXT * (json + header) as u64
    }

    /// Compares what loading an untrusted package takes with its limit.
    pub(crate) fn allow_loading(&self) -> Result<()> {
        if self.limits.is_some() { self.allow(self.loaded_bytes()?) } else { Ok(()) }
    }

    /// What loading takes at most, in bytes: [`Package::read_bytes`], the IR as text and parsed, the weights, and the largest weight while it is copied.
    fn loaded_bytes(&self) -> Result<u64> {
        let mut ir = 0;
        for kernel in list(&self.manifest["kernels"], "kernels")? {
            ir += self.entry(text(&kernel["ir"], "ir")?)?.len();
        }
        let weights = weights::read(self.entry(WEIGHTS)?).map_err(|reason| fail(&format!("{WEIGHTS}: {reason}")))?;
        let largest = weights.iter().map(|entry| entry.bytes.len()).max().unwrap_or(0);
        let all: usize = weights.iter().map(|entry| entry.bytes.len()).sum();
        Ok(self.read_bytes() + BYTES_PER_TEXT * ir as u64 + (all + largest) as u64)
    }

    /// The names of the entries that have another checksum than the manifest states, sorted.
    pub(crate) fn changed(&self) -> Result<Vec<&str>> {
        let hashes = self.manifest["blake3"].as_object().ok_or_else(|| fail("its manifest has no checksums"))?;
        let mut changed = Vec::new();
        for (name, _) in self.entries().into_iter().filter(|(name, _)| *name != MANIFEST) {
            let hash = blake3::hash(self.entry(name)?).to_hex();
            if hashes.get(name).and_then(Json::as_str) != Some(hash.as_str()) {
                changed.push(name);
            }
        }
        Ok(changed)
    }

    /// The manifest: the format, the kernels with their variants, and the hashes of all entries.
    pub fn manifest(&self) -> &Json {
        &self.manifest
    }

    /// The names of the entries and their sizes in bytes, sorted by name.
    pub fn entries(&self) -> Vec<(&str, usize)> {
        let mut entries: Vec<(&str, usize)> = self.entries.iter().map(|(name, range)| (&**name, range.len())).collect();
        entries.sort_unstable();
        entries
    }

    /// The number of bytes of the file.
    pub fn file_bytes(&self) -> usize {
        self.file.bytes().len()
    }

    /// The number of the file's byte at which an entry begins.
    ///
    /// # Errors
    /// [`PackageError::Malformed`] if there is no such entry.
    pub fn offset(&self, name: &str) -> Result<usize> {
        self.entries.get(name).map(|range| range.start).ok_or_else(|| fail(&format!("it has no entry `{name}`")))
    }

    /// The program and the version that wrote the package, such as `galatea 0.1.0`.
    pub fn written_by(&self) -> &str {
        self.manifest["written_by"].as_str().unwrap_or("an unknown program")
    }

    /// The format of the package.
    pub fn format(&self) -> u64 {
        self.manifest["format"].as_u64().unwrap_or_default()
    }

    /// The bytes of an entry.
    ///
    /// # Errors
    /// [`PackageError::Malformed`] if there is no such entry.
    pub fn entry(&self, name: &str) -> Result<&[u8]> {
        let range = self.entries.get(name).ok_or_else(|| fail(&format!("it has no entry `{name}`")))?;
        Ok(&self.file.bytes()[range.clone()])
    }

    fn text(&self, name: &str) -> Result<String> {
        String::from_utf8(self.entry(name)?.to_vec()).map_err(|_| fail(&format!("entry `{name}` is not UTF-8")))
    }

    /// A session of the program on a device, to which the weights are copied.
    ///
    /// # Errors
    /// [`PackageError::Malformed`] for contents that do not belong together, and errors of the device. For an [untrusted](Package::untrusted) package also
    /// [`RunError::MemoryLimit`], [`RunError::LoadTime`], and errors of the compiler.
    pub fn load(&self, device: &Device) -> Result<Session> {
        let Some(limits) = self.limits else { return Ok(Session::new(self.plan(device)?, device)?) };
        let end = limits.end();
        let mut plan = self.plan(device)?;
        let held = prepare(&mut plan, device, limits, end, self.loaded_bytes()?)?;
        Ok(Session::of(plan, device, Some(Bounds { limits, held }))?)
    }

    /// The plan, with its weights on a device.
    ///
    /// # Errors
    /// As [`Package::load`].
    pub fn plan(&self, device: &Device) -> Result<Plan> {
        self.allow_loading()?;
        let kernels = self.kernels()?.into_iter().map(|parts| self.kernel_of(parts)).collect::<Result<Vec<_>>>()?;
        let (mut plan, mut known): (Option<Plan>, _) = (None, HashMap::new());
        for read in self.read_plans(&kernels)? {
            let json::Read { plan: mut read, constants, errors } = read;
            if let Some((_, error)) = errors.into_iter().next() {
                return Err(error);
            }
            self.constants(&mut read, constants, &mut known, device)?;
            match &mut plan {
                Some(plan) => plan.on_cpu = Some(Box::new(read)),
                None => plan = Some(read),
            }
        }
        let plan = plan.ok_or_else(|| fail("it has no plan"))?;
        let invalid = |violation: crate::Violation| PackageError::from(RunError::Invalid { reason: violation.reason });
        plan.verify().and_then(|()| plan.verify_dims()).map_err(invalid)?;
        Ok(plan)
    }

    /// The kernel of these parts.
    pub(crate) fn kernel_of(&self, parts: KernelParts) -> Result<&'static Kernel> {
        let kernel = match self.limits {
            Some(_) => parts.untrusted(),
            // SAFETY: the caller of `open` trusts the writer, who compiled the variants from this IR.
            None => unsafe { parts.kernel() },
        };
        Ok(kernel?)
    }

    /// The plan without its constants, and then that for the CPU if there is one.
    pub(crate) fn read_plans(&self, kernels: &[&'static Kernel]) -> Result<Vec<json::Read>> {
        let read = |name: &str| json::read(&json::parse(name, self.entry(name)?)?, kernels);
        let mut plans = vec![read(PLAN)?];
        if self.entries.contains_key(PLAN_ON_CPU) {
            plans.push(read(PLAN_ON_CPU)?);
        }
        Ok(plans)
    }

    /// Adds the constants to their plan. Each weight is the tensor of one constant. `known` are the weights that another plan of the package has, which are shared.
    pub(crate) fn constants(
        &self,
        plan: &mut Plan,
        constants: Vec<ReadConstant>,
        known: &mut HashMap<String, Tensor>,
        device: &Device,
    ) -> Result<()> {
        let file = self.entry(WEIGHTS)?;
        let entries = weights::read(file).map_err(|reason| fail(&format!("{WEIGHTS}: {reason}")))?;
        let mut by_name: HashMap<&str, &weights::Entry> = entries.iter().map(|entry| (&*entry.name, entry)).collect();
        for ReadConstant { value, weight, is_named } in constants {
            let TensorType { dtype, dims } = &plan.types[value.0 as usize];
            let fits =
                |entry: &&weights::Entry| entry.dtype == *dtype && weights::extents(dims).is_ok_and(|extents| extents == entry.shape);
            let entry = by_name.remove(&*weight).filter(fits);
            let entry = entry.ok_or_else(|| fail(&format!("it has no weight `{weight}` of the plan's type")))?;
            let tensor = match known.get(&weight) {
                Some(tensor) => tensor.clone(),
                None => weights::tensor(device, entry, file)?,
            };
            known.insert(weight.clone(), tensor.clone());
            plan.constants.push(Constant { value, name: is_named.then_some(weight), tensor });
        }
        Ok(())
    }

    /// The kernels, in the order of the manifest. They are not compared with their IR; [`Package::plan`] does so.
    ///
    /// # Errors
    /// [`PackageError::Malformed`] for a manifest that cannot be read.
    pub fn kernels(&self) -> Result<Vec<KernelParts>> {
        let mut named = HashSet::new();
        list(&self.manifest["kernels"], "kernels")?.iter().map(|kernel| self.kernel(kernel, &mut named)).collect()
    }

    /// A kernel of the manifest. `named` are the entries of other kernels: a second copy of them would take memory that the file does not account for.
    pub(crate) fn kernel<'p>(&'p self, json: &'p Json, named: &mut HashSet<&'p str>) -> Result<KernelParts> {
        let mut code = |name: &'p Json, field: &str| {
            let name = text(name, field)?;
            if named.insert(name) { self.text(name) } else { Err(fail(&format!("two kernels or variants name entry `{name}`"))) }
        };
        let param = |param: &Json| {
            let name = text(&param[0], "params")?.to_owned();
            let kind = kind_of(text(&param[1], "params")?).ok_or_else(|| fail(&format!("parameter `{name}` has no kind")))?;
            Ok((name, kind))
        };
        let fact = |fact: &Json| {
            let param = text(&fact["param"], "param")?.to_owned();
            let known = |name: &str| fact[name].as_str().and_then(unhex);
            let known = known("is").map(KnownParts::Is).or_else(|| known("multiple_of").map(KnownParts::MultipleOf));
            Ok(FactParts { param, known: known.ok_or_else(|| fail("a fact is damaged"))? })
        };
        let ir = code(&json["ir"], "ir")?;
        let content = |entry: &Json| Ok((text(&entry[0], "contents")?.to_owned(), text(&entry[1], "contents")?.to_owned()));
        let built = |built: &Json| -> Result<BuiltParts> {
            let count =
                built["variants"].as_u64().and_then(|count| usize::try_from(count).ok()).ok_or_else(|| fail("`built` is damaged"))?;
            Ok(BuiltParts { count, contents: list(&built["contents"], "contents")?.iter().map(content).collect::<Result<_>>()? })
        };
        let variant = |variant: &'p Json| {
            let key = list(&variant["key"], "key")?.iter().map(|word| word.as_str().and_then(unhex)).collect::<Option<Vec<u64>>>();
            let shared_bytes = variant["shared_bytes"].as_u64().and_then(|bytes| u32::try_from(bytes).ok());
            Ok(VariantParts {
                key: key.ok_or_else(|| fail("a key has hexadecimal words"))?,
                schedule: read_schedule(&variant["schedule"])?,
                target: text(&variant["target"], "target")?.to_owned(),
                entry: text(&variant["entry"], "entry")?.to_owned(),
                shared_bytes: shared_bytes.ok_or_else(|| fail("a variant is damaged"))?,
                ptx: code(&variant["ptx"], "ptx")?,
            })
        };
        Ok(KernelParts {
            name: text(&json["name"], "name")?.to_owned(),
            ir,
            schedule: read_schedule(&json["schedule"])?,
            params: list(&json["params"], "params")?.iter().map(param).collect::<Result<_>>()?,
            facts: list(&json["facts"], "facts")?.iter().map(fact).collect::<Result<_>>()?,
            variants: match self.limits {
                Some(_) => Vec::new(),
                None => list(&json["variants"], "variants")?.iter().map(variant).collect::<Result<_>>()?,
            },
            built: match self.limits {
                Some(_) => None,
                None => Some(&json["built"]).filter(|json| !json.is_null()).map(built).transpose()?,
            },
        })
    }
}

/// Compiles the launches of an untrusted plan for a device, beside what is held already. Returns the bytes that are held then: also the scratch memory
/// that all threads take for them.
pub(crate) fn prepare(plan: &mut Plan, device: &Device, limits: Limits, end: Instant, held: u64) -> Result<u64, RunError> {
    // The programs of a launch run on the calling thread and on all of rayon's.
    let threads = if device.is_cpu() { device.multiprocessors() as u64 + 1 } else { 0 };
    let mut scratch = 0;
    for node in &mut plan.on_mut(device).nodes {
        let NodeOp::Launch(launch) = &mut node.op else { continue };
        let of_thread = launch.prepare(device, &mut |bytes| {
            if Instant::now() >= end {
                return Err(RunError::LoadTime { limit: limits.most_time() });
            }
            limits.allow(held.saturating_add(bytes as u64))
        });
        let of_thread = of_thread.map_err(|error| match error {
            RunError::Runtime(_) => error.at(&node.location),
            of_limits => of_limits,
        })?;
        scratch = scratch.max(threads * of_thread as u64);
        limits.allow(held.saturating_add(scratch))?;
    }
    Ok(held.saturating_add(scratch))
}
