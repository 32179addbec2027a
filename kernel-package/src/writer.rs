//! Writing packages: the variants that a file needs, its entries and their hashes. [`crate::package`] reads them.

use std::io::{Cursor, Seek, Write};
use std::path::{Path, PathBuf};

use kernel_runtime::Target;
use kernel_runtime::ops::Tensor;
use kernel_runtime::ops::parts::{Kernel, KernelParts, KnownRecords};
use kernel_runtime::ops::recorder::{RecordedLaunch, RecordedTuning};
use serde_json::{Value as Json, json};

use crate::error::PackageError;
use crate::manifest::write_kernel;
use crate::package::{FORMAT, JSON, MANIFEST, PLAN, PLAN_ON_CPU, WEIGHTS};
use crate::plan::{NodeOp, Plan};
use crate::{archive, code, files, json, weights};

type Result<T, E = PackageError> = std::result::Result<T, E>;

/// The bytes that most packages have beside the weights.
const MOST_OTHERS: usize = 1 << 20;

/// Writes packages of a plan.
#[derive(Debug)]
pub struct PackageWriter<'p> {
    plan: &'p Plan,
    targets: Vec<Target>,
    /// The text of a file of records, in place of those of this machine.
    records: Option<String>,
    /// The compute capabilities of the GPUs that the package has machine code for.
    capabilities: Vec<(u32, u32)>,
    ptxas: Option<PathBuf>,
}

impl<'p> PackageWriter<'p> {
    /// A writer for this plan. Each kernel has the variants that were built with the program. A kernel without a variant for its types and constants is compiled.
    pub fn new(plan: &'p Plan) -> PackageWriter<'p> {
        PackageWriter { plan, targets: vec![Target::SM_80], records: None, capabilities: Vec::new(), ptxas: None }
    }

    /// The architectures for which kernels are compiled if no variant of them was built; `sm_80` by default, which later GPUs run, too.
    #[must_use]
    pub fn targets(mut self, targets: impl IntoIterator<Item = Target>) -> PackageWriter<'p> {
        self.targets = targets.into_iter().collect();
        self
    }

    /// Adds machine code for GPUs of these compute capabilities, such as `(9, 0)`, beside the PTX. The driver then loads a kernel in 0.1 ms, and compiles nothing.
    /// Other GPUs, and drivers that are too old for the machine code, take the PTX.
    ///
    /// NVIDIA's assembler makes it: that of [`PackageWriter::ptxas`], else of the variable `GALATEA_PTXAS`, else `ptxas` in `PATH`. No GPU is needed. The
    /// assembler should be no newer than the drivers of the machines that load the package.
    #[must_use]
    pub fn machine_code(mut self, capabilities: impl IntoIterator<Item = (u32, u32)>) -> PackageWriter<'p> {
        self.capabilities = capabilities.into_iter().collect();
        self.capabilities.sort_unstable();
        self.capabilities.dedup();
        self
    }

    /// The path of the assembler for [`PackageWriter::machine_code`].
    #[must_use]
    pub fn ptxas(mut self, path: impl Into<PathBuf>) -> PackageWriter<'p> {
        self.ptxas = Some(path.into());
        self
    }

    /// Takes results of tuning from the text of a file, such as `galatea tune` and `galatea cache export` write, in place of those of this machine. An empty
    /// text has no results: the package then tunes where it runs.
    ///
    /// By default a package has what this machine knows of its launches, in its cache or from this process. A GPU of the same name then runs the fastest
    /// configurations at once, without timing any.
    #[must_use]
    pub fn records(mut self, text: impl Into<String>) -> PackageWriter<'p> {
        self.records = Some(text.into());
        self
    }

    /// Writes the file. If a file exists, it is replaced in one step: a reader sees the old one or the new one. Only one weight at a time is copied from its
    /// device, so that a package may be larger than the memory.
    ///
    /// # Errors
    /// [`PackageError::File`] for the path, and those of [`PackageWriter::to_bytes`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        files::replace(path, |file| self.write_to(archive::Writer::new(file, path)).map(drop))
    }

    /// The bytes of the file. Equal programs give equal bytes.
    ///
    /// # Errors
    /// [`PackageError::NoCode`] for a kernel that has no code and cannot be compiled, [`PackageError::Records`] for a text that holds no
    /// [records](PackageWriter::records), [`PackageError::NoAssembler`] and [`PackageError::NotAssembled`] for machine code, and errors of copies from the
    /// device.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        // Nearly all bytes are those of weights.
        let bytes = weights::Contents::of(&self.weights())?.len();
        let file = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0) + MOST_OTHERS);
        let file = self.write_to(archive::Writer::new(Cursor::new(file), Path::new("memory")))?;
        Ok(file.into_inner())
    }

    /// Writes all entries. The manifest is the last one, because it has the hashes of the others.
    fn write_to<W: Write + Seek>(&self, mut file: archive::Writer<W>) -> Result<W> {
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
        for (name, bytes) in &entries {
            write_entry(&mut file, name, bytes)?;
        }
        let weights = self.weights();
        let weights = weights::Contents::of(&weights)?;
        file.entry(WEIGHTS, weights.len(), weights.parts())?;
        let hashes: serde_json::Map<String, Json> =
            file.hashes().iter().map(|(name, hash)| (name.clone(), hash.to_hex().to_string().into())).collect();
        let mut manifest = json!({
            "format": FORMAT,
            "written_by": concat!("galatea ", env!("CARGO_PKG_VERSION")),
            "program": self.plan.name,
            "kernels": list,
            "blake3": hashes,
        });
        let ops = self.plan.opaque_ops();
        if !ops.is_empty() {
            manifest["opaque_ops"] = ops.into();
        }
        write_entry(&mut file, MANIFEST, &pretty(&manifest))?;
        file.finish()
    }

    /// The plan, and that for the CPU if there is one.
    fn plans(&self) -> impl Iterator<Item = &'p Plan> {
        std::iter::once(self.plan).chain(self.plan.on_cpu.as_deref())
    }

    /// Whether a launch has configurations.
    fn is_tuned(&self) -> bool {
        self.plan.nodes.iter().any(|node| matches!(&node.op, NodeOp::Launch(launch) if launch.tuning().is_some()))
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
        let known = match self.records.as_deref() {
            None if self.is_tuned() => KnownRecords::of_machine(),
            None | Some("") => KnownRecords::default(),
            Some(text) => KnownRecords::parse(text).map_err(|reason| PackageError::Records { reason })?,
        };
        let assembler = match &self.capabilities[..] {
            [] => None,
            _ => Some(code::assembler(self.ptxas.as_deref())?),
        };
        let parts = |(kernel, launches): (&'static Kernel, Vec<&RecordedLaunch>)| {
            let code: Vec<_> = launches.iter().flat_map(|launch| launch.code()).map(|(key, _)| key).collect();
            let mut parts = KernelParts::of(kernel, &code, launches.iter().any(|launch| launch.tuning().is_some()));
            if let Some(built) = &mut parts.built {
                built.records = known.of_launches(&launches);
            }
            for launch in launches {
                for target in &self.targets {
                    code::add_variants(&mut parts, launch, *target)?;
                }
            }
            for variant in &mut parts.variants {
                variant.ptx = code::without_layout(&variant.ptx);
            }
            if let Some(assembler) = &assembler {
                code::add_machine_code(&mut parts, assembler, &self.capabilities)?;
            }
            Ok((kernel, parts))
        };
        launches.into_iter().map(parts).collect()
    }

    /// The weights of all plans, each once, with their names.
    fn weights(&self) -> Vec<(String, Tensor)> {
        let tensors = |plan: &'p Plan| plan.constants.iter().map(|constant| constant.tensor.clone());
        let mut named: Vec<_> = self.plan.constant_names().into_iter().zip(tensors(self.plan)).collect();
        if let Some(on_cpu) = &self.plan.on_cpu {
            for (name, tensor) in self.plan.constant_names_on_cpu(on_cpu).into_iter().zip(tensors(on_cpu)) {
                if !named.iter().any(|(known, own)| *known == name && own.is_same(&tensor)) {
                    named.push((name, tensor));
                }
            }
        }
        named
    }
}

/// Writes an entry that is in memory.
fn write_entry<W: Write + Seek>(file: &mut archive::Writer<W>, name: &str, bytes: &[u8]) -> Result<()> {
    if JSON.contains(&name) {
        json::check_size(name, bytes)?;
    }
    file.entry(name, bytes.len() as u64, [Ok(bytes)])
}

/// JSON that people can read, and whose lines a tool can compare.
fn pretty(json: &Json) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(json).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
