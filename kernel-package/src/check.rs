//! Checks of a whole package, which go on behind the first error.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use kernel_runtime::ops::parts::{Architecture, Kernel, KnownRecords, MachineCodeParts, Schedule};
use kernel_runtime::{Device, Target};

use crate::error::PackageError;
use crate::json::list;
use crate::limits::Limits;
use crate::package::{self, File, Package};
use crate::plan::{NodeOp, Plan};
use crate::{files, json};

/// A check of a package.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Check {
    /// What was checked, such as `the checksums of 9 entries`.
    pub subject: String,
    /// What is wrong. None if the check has passed.
    pub errors: Vec<String>,
}

impl Package {
    /// Checks all of a file: its structure, the checksums, each kernel against its IR, each launch against its kernel, the weights, the rules of plans, and that
    /// each launch has code for each of these targets; for any target if none is given. A check that needs the result of a failed one is left out.
    ///
    /// ```no_run
    /// # use kernel_package::{Package, PackageError};
    /// # fn main() -> Result<(), PackageError> {
    /// for check in Package::check("model.gpk", &[])? {
    ///     println!("{}: {} errors", check.subject, check.errors.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`PackageError::File`] if the file cannot be read. Other errors are those of checks.
    pub fn check(path: impl AsRef<Path>, targets: &[Target]) -> Result<Vec<Check>, PackageError> {
        Ok(Package::checks(File::Mapped(Arc::new(files::map(path.as_ref())?)), targets, None))
    }

    /// The checks of [`Package::check`] as for [`Package::open_untrusted`]: kernels may only have ops of safe kernels, and each is compiled from its IR for the CPU.
    /// PTX is ignored.
    ///
    /// # Errors
    /// [`PackageError::File`] if the file cannot be read, and [`RunError::MemoryLimit`](crate::RunError::MemoryLimit) if reading it takes more memory than the limit.
    pub fn check_untrusted(path: impl AsRef<Path>, limits: Limits) -> Result<Vec<Check>, PackageError> {
        let file = File::Bytes(files::read(path.as_ref(), limits)?);
        Ok(Package::checks(file, &[], Some(limits)))
    }

    fn checks(file: File, targets: &[Target], limits: Option<Limits>) -> Vec<Check> {
        let mut checks = Vec::new();
        let package = match Package::unchecked(file, limits) {
            Ok(package) => package,
            Err(error) => {
                checks.push(Check { subject: "the structure of the file".to_owned(), errors: vec![reason(&error)] });
                return checks;
            }
        };
        let entries = count(package.entries().len(), "entry", "entries");
        checks.push(Check { subject: format!("the structure of the file: {entries}, format {}", package.format()), errors: Vec::new() });
        package.check_contents(targets, limits, &mut checks);
        checks
    }

    fn check_contents(&self, targets: &[Target], limits: Option<Limits>, checks: &mut Vec<Check>) {
        let subject = format!("the checksums of {}", count(self.entries().len().saturating_sub(1), "entry", "entries"));
        let changed =
            self.changed().map(|names| names.iter().map(|name| format!("entry `{name}` has changed since it was written")).collect());
        checks.push(Check { subject, errors: changed.unwrap_or_else(|error| vec![reason(&error)]) });
        if limits.is_some()
            && let Err(error) = self.allow_loading()
        {
            checks.push(Check { subject: "the memory of the package".to_owned(), errors: vec![reason(&error)] });
            return;
        }
        let Some(kernels) = self.check_kernels(checks) else { return };
        let reads = match self.read_plans(&kernels) {
            Ok(reads) => reads,
            Err(error) => {
                checks.push(Check { subject: "the plan".to_owned(), errors: vec![reason(&error)] });
                return;
            }
        };
        let (mut plan, mut known): (Option<Plan>, _) = (None, HashMap::new());
        for json::Read { plan: mut read, constants, errors } in reads {
            let of = if plan.is_some() { " of the plan for the CPU" } else { "" };
            let launches = count(launches(&read).count() + errors.len(), "launch", "launches");
            let is_read = errors.is_empty();
            let errors = errors.into_iter().map(|(number, error)| format!("step {number}: {}", reason(&error))).collect();
            checks.push(Check { subject: format!("the arguments and grids of {launches}{of}"), errors });
            if !is_read {
                return;
            }
            let subject = format!("the types and sizes of {}{of}", count(constants.len(), "constant", "constants"));
            let filled = self.constants(&mut read, constants, &mut known, &Device::cpu());
            checks.push(Check { subject, errors: filled.as_ref().err().map(reason).into_iter().collect() });
            if filled.is_err() {
                return;
            }
            match &mut plan {
                Some(plan) => plan.on_cpu = Some(Box::new(read)),
                None => plan = Some(read),
            }
        }
        let Some(plan) = &mut plan else { return };
        let subject =
            format!("the rules of plans: {}, {}", count(plan.types.len(), "value", "values"), count(plan.nodes.len(), "step", "steps"));
        let broken = [plan.verify(), plan.verify_dims()].into_iter().filter_map(Result::err);
        let errors = broken.map(|violation| match violation.location {
            Some(location) => format!("{} ({location})", violation.reason),
            None => violation.reason,
        });
        let errors = errors.chain(self.names_ops_of(plan).err().as_ref().map(reason));
        checks.push(Check { subject, errors: errors.collect() });
        if let Some(limits) = limits {
            let errors = package::prepare(plan, &Device::cpu(), limits, limits.end(), 0).err().map(|error| error.to_string());
            let subject =
                format!("the compilation of {} for the CPU", count(launches(plan.on(&Device::cpu())).count(), "launch", "launches"));
            checks.push(Check { subject, errors: errors.into_iter().collect() });
            return;
        }
        match targets {
            [] => checks.push(code(plan, None)),
            targets => checks.extend(targets.iter().map(|target| code(plan, Some(*target)))),
        }
    }

    /// The kernels, if all of them can be read.
    fn check_kernels(&self, checks: &mut Vec<Check>) -> Option<Vec<&'static Kernel>> {
        let list = match list(&self.manifest()["kernels"], "kernels") {
            Ok(list) => list,
            Err(error) => {
                checks.push(Check { subject: "the kernels".to_owned(), errors: vec![reason(&error)] });
                return None;
            }
        };
        let (mut kernels, mut named) = (Vec::new(), HashSet::new());
        for (number, json) in list.iter().enumerate() {
            let mut subject = format!("kernel {number}");
            let mut errors = Vec::new();
            let kernel = self.kernel(json, &mut named).and_then(|parts| {
                let [params, facts, variants] = [
                    count(parts.params.len(), "parameter", "parameters"),
                    count(parts.facts.len(), "fact", "facts"),
                    count(parts.variants.len(), "variant", "variants"),
                ];
                subject = format!("kernel `{}`: its IR, {params}, {facts}, {variants}", parts.name);
                let codes: Vec<_> = parts.variants.iter().flat_map(|variant| &variant.machine_code).collect();
                if !codes.is_empty() {
                    subject += &format!(", {}", count(codes.len(), "file of machine code", "files of machine code"));
                }
                let is_code =
                    |code: &&&MachineCodeParts| code.architecture.parse::<Architecture>().is_ok() && code.bytes.starts_with(b"\x7fELF");
                if let Some(code) = codes.iter().find(|code| !is_code(code)) {
                    errors.push(format!("a file for architecture `{}` is no machine code that this version loads", code.architecture));
                }
                if let Some(text) = parts.built.as_ref().map(|built| &built.records).filter(|text| !text.is_empty()) {
                    match KnownRecords::parse(text) {
                        Ok(records) => subject += &format!(", {}", count(records.all().len(), "result of tuning", "results of tuning")),
                        Err(reason) => errors.push(reason),
                    }
                }
                self.kernel_of(parts)
            });
            errors.extend(kernel.as_ref().err().map(reason));
            checks.push(Check { subject, errors });
            kernels.push(kernel.ok());
        }
        kernels.into_iter().collect()
    }
}

/// The error without what all errors of files have in common.
fn reason(error: &PackageError) -> String {
    match error {
        PackageError::Malformed { reason } => reason.clone(),
        _ => error.to_string(),
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn launches(plan: &Plan) -> impl Iterator<Item = (usize, &kernel_runtime::ops::recorder::RecordedLaunch)> {
    plan.nodes.iter().enumerate().filter_map(|(number, node)| match &node.op {
        NodeOp::Launch(launch) => Some((number, launch)),
        NodeOp::Alloc { .. } | NodeOp::View { .. } | NodeOp::Extern(_) => None,
    })
}

/// Checks that each launch has a variant that relies on no fact, for the target or for any.
fn code(plan: &Plan, wanted: Option<Target>) -> Check {
    let of = wanted.map_or_else(|| "any target".to_owned(), |target| format!("`{target}`"));
    let runs = |name: &str| match (name.parse::<Target>(), wanted) {
        (Ok(target), Some(wanted)) => {
            let (major, minor) = (wanted.number() / 10, wanted.number() % 10);
            target.runs_on(major.cast_signed(), minor.cast_signed())
        }
        (known, None) => known.is_ok(),
        (Err(_), _) => false,
    };
    let mut errors = Vec::new();
    for (number, launch) in launches(plan) {
        let is_of = |key: &[u64], schedule: Option<Schedule>| {
            let mut variants = launch.of_kernel().variants().iter();
            variants.any(|of| of.key == key && schedule.is_none_or(|schedule| of.schedule == schedule) && runs(of.target))
        };
        // A configuration that no GPU of the target can run has no code.
        if !launch.code().into_iter().any(|(key, schedule)| is_of(key, schedule)) {
            errors.push(format!(
                "step {number}: kernel `{}` ({}) has no variant for {of}\nhelp: write the package with `.targets([..])`",
                launch.kernel(),
                launch.parameters()
            ));
        }
    }
    Check { subject: format!("the code of {} for {of}", count(launches(plan).count(), "launch", "launches")), errors }
}
