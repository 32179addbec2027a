//! The operations of launches on a simulated GPU, counted for each kernel and each of its source lines.

use std::fmt;
use std::path::PathBuf;
use std::sync::{OnceLock, PoisonError};

use kernel_sim::{Counters, LineCounters};

use crate::device::Backend;
use crate::{Device, Error, Result};

/// The counters of all launches on a simulated GPU since it was opened, or since [`Device::reset_sim_report`]. `Display` writes a table for each
/// kernel, with a row for each source line.
#[derive(Clone, Debug)]
pub struct Report {
    /// The simulated GPU.
    pub device: Device,
    /// One report for each kernel, in the order of their first launches.
    pub kernels: Vec<KernelReport>,
}

/// The counters of the launches of one kernel. Launches that ended with a fault are not included.
#[derive(Clone, Debug)]
pub struct KernelReport {
    /// The kernel.
    pub kernel: &'static str,
    /// The number of launches.
    pub launches: usize,
    /// The most shared memory that a launch asked for, in bytes a CTA.
    pub shared_bytes: u32,
    /// The sums over all launches, by source line.
    pub counters: Counters,
    /// The source files: the number by which lines refer to a file, and its name.
    files: Vec<(u32, String)>,
}

impl Report {
    /// The report of the kernel with this name, if it was launched.
    pub fn kernel(&self, name: &str) -> Option<&KernelReport> {
        self.kernels.iter().find(|report| report.kernel == name)
    }
}

impl KernelReport {
    /// The sums over all source lines.
    pub fn total(&self) -> LineCounters {
        self.counters.total()
    }

    /// The names of its source files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(_, name)| name.as_str())
    }
}

impl Device {
    /// The counters of the launches on a simulated GPU so far; `None` on other devices. Requires the feature `sim`.
    pub fn sim_report(&self) -> Option<Report> {
        let Backend::Sim(sim) = self.backend() else { return None };
        let ledger = sim.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Report { device: *self, kernels: ledger.kernels.clone() })
    }

    /// Resets the counters of a simulated GPU. Requires the feature `sim`.
    pub fn reset_sim_report(&self) {
        if let Backend::Sim(sim) = self.backend() {
            sim.ledger.lock().unwrap_or_else(PoisonError::into_inner).kernels.clear();
        }
    }
}

/// The accumulated counters.
#[derive(Default)]
pub(super) struct Ledger {
    kernels: Vec<KernelReport>,
}

impl Ledger {
    /// Adds a launch. Kernels of one name in two source files are counted separately, because their lines differ.
    pub(super) fn add(&mut self, kernel: &'static str, files: &[(u32, String)], shared_bytes: u32, counters: &Counters) {
        let same = |report: &&mut KernelReport| report.kernel == kernel && report.files == files;
        match self.kernels.iter_mut().find(same) {
            Some(report) => {
                report.launches += 1;
                report.shared_bytes = report.shared_bytes.max(shared_bytes);
                report.counters.merge(counters);
            }
            None => {
                self.kernels.push(KernelReport { kernel, launches: 1, shared_bytes, counters: counters.clone(), files: files.to_vec() })
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, report) in self.kernels.iter().enumerate() {
            let gap = if i > 0 { "\n" } else { "" };
            writeln!(f, "{gap}{} on {}, {}", report.kernel, self.device.name(), times(report.launches))?;
            write!(f, "{report}")?;
        }
        Ok(())
    }
}

impl fmt::Display for KernelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.counters.to_table(&self.files))
    }
}

/// The environment variable that names a directory for reports. `galatea sim --report` sets it.
const VARIABLE: &str = "GALATEA_SIM_REPORT";

/// Writes the report so far into the directory that the environment variable names, if it is set: one file for each process and device.
pub(super) fn write_if_asked(device: Device) -> Result<()> {
    static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from));
    let (Some(directory), Some(report)) = (directory, device.sim_report()) else { return Ok(()) };
    let name = format!("{}-{}.txt", std::process::id(), device.to_string().replace(':', "-"));
    let path = directory.join(name);
    std::fs::write(&path, report.to_string()).map_err(|error| Error::Report { path, error })
}

fn times(launches: usize) -> String {
    if launches == 1 { "1 launch".to_owned() } else { format!("{launches} launches") }
}
