//! Packages: one file with a plan, its kernels and its weights. [`crate::writer`] writes them.
//!
//! | entry | contents |
//! |---|---|
//! | `manifest.json` | the format, the kernels with their variants, the opaque ops, and the BLAKE3 hash of every other entry |
//! | `plan.json` | the plan, see [`crate::json`] |
//! | `plan-cpu.json` | the plan for the CPU, if ops have functions of their own for it |
//! | `kernels/0-silu.ir` | the IR of a kernel, generic over types and constants |
//! | `kernels/0-silu-1.ptx` | a variant |
//! | `kernels/0-silu-1.sm_90a.cubin` | its machine code for an architecture |
//! | `kernels/0-silu.tuning.json` | results of tuning |
//! | `weights.safetensors` | the constants |

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use kernel_runtime::Device;
use kernel_runtime::ops::Tensor;
use kernel_runtime::ops::parts::{Kernel, KernelParts};
use kernel_runtime::ops::recorder::TensorType;
use serde_json::Value as Json;

use crate::error::{PackageError, RunError};
use crate::json::{self, ReadConstant, fail, list, text};
use crate::limits::{BYTES_PER_TEXT, Bounds, Limits};
use crate::plan::{Constant, NodeOp, Plan};
use crate::session::Session;
use crate::{archive, files, weights};

type Result<T, E = PackageError> = std::result::Result<T, E>;

/// The format that this version writes and reads.
pub(crate) const FORMAT: u64 = 1;
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const PLAN_ON_CPU: &str = "plan-cpu.json";
pub(crate) const WEIGHTS: &str = "weights.safetensors";
/// The entries that are JSON.
pub(crate) const JSON: [&str; 3] = [MANIFEST, PLAN, PLAN_ON_CPU];

/// A package: the file of a recorded program.
///
/// Its PTX and machine code run as they are. So [open](Package::open) only packages whose writer you trust, as you would a library, and all others with
/// [`Package::open_untrusted`].
#[derive(Clone, Debug)]
pub struct Package {
    file: File,
    /// The limits of an untrusted package.
    pub(crate) limits: Option<Limits>,
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
    /// PTX and machine code are ignored: each kernel is verified and compiled from its IR when the package is [loaded](Package::load), for a GPU by the feature `jit`. Kernels with
    /// `inline_ptx!` or addresses of tensors are refused, and so are programs that call opaque ops, which are code of this
    /// process. Records of tuning are ignored, too, and nothing is tuned: a launch with configurations runs the first
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
    /// As [`Package::from_bytes`], [`PackageError::OpaqueOps`], and [`RunError::MemoryLimit`] if reading takes more memory than the limit.
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
            Some(FORMAT) => {}
            Some(found) => return Err(PackageError::Format { found, expected: FORMAT }),
            None => return Err(fail("its manifest has no format")),
        }
        package.allow_ops()?;
        Ok(package)
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

    /// The text of an entry.
    pub(crate) fn text(&self, name: &str) -> Result<String> {
        String::from_utf8(self.entry(name)?.to_vec()).map_err(|_| fail(&format!("entry `{name}` is not UTF-8")))
    }

    /// A session of the program on a device, to which the weights are copied.
    ///
    /// # Errors
    /// [`RunError::MissingOps`], which lists all [opaque ops](Package::opaque_ops) that this process lacks or has with another schema,
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
        self.names_ops_of(&plan)?;
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
