//! What launches on a simulated GPU did, counted for each kernel and each of its source lines.

use std::fmt;
use std::sync::PoisonError;

use kernel_sim::{Counters, LineCounters};

use crate::Device;
use crate::device::Backend;

/// What all launches on a simulated GPU did since it was opened, or since [`Device::reset_sim_report`]. Printed, it is a table for each
/// kernel with a row for each source line.
#[derive(Clone, Debug)]
pub struct Report {
    /// The simulated GPU.
    pub device: Device,
    /// One for each kernel, in the order of their first launches.
    pub kernels: Vec<KernelReport>,
}

/// What the launches of one kernel did. Launches that ended with a fault are left out.
#[derive(Clone, Debug)]
pub struct KernelReport {
    /// The kernel.
    pub kernel: &'static str,
    /// How many launches there were.
    pub launches: usize,
    /// What they did together, by source line.
    pub counters: Counters,
    /// The names of the source files that the lines number.
    files: Vec<(u32, String)>,
}

impl Report {
    /// The kernel of this name, if it was launched.
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
    /// What launches on a simulated GPU did so far; none on other devices. With the feature `sim`.
    pub fn sim_report(&self) -> Option<Report> {
        let Backend::Sim(sim) = self.backend() else { return None };
        let ledger = sim.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Report { device: *self, kernels: ledger.kernels.clone() })
    }

    /// Forgets what launches on a simulated GPU did so far. With the feature `sim`.
    pub fn reset_sim_report(&self) {
        if let Backend::Sim(sim) = self.backend() {
            sim.ledger.lock().unwrap_or_else(PoisonError::into_inner).kernels.clear();
        }
    }
}

/// Where launches are added up.
#[derive(Default)]
pub(super) struct Ledger {
    kernels: Vec<KernelReport>,
}

impl Ledger {
    /// Kernels of one name in two source files are two: their lines are not the same.
    pub(super) fn add(&mut self, kernel: &'static str, files: &[(u32, String)], counters: &Counters) {
        let same = |report: &&mut KernelReport| report.kernel == kernel && report.files == files;
        match self.kernels.iter_mut().find(same) {
            Some(report) => {
                report.launches += 1;
                report.counters.merge(counters);
            }
            None => self.kernels.push(KernelReport { kernel, launches: 1, counters: counters.clone(), files: files.to_vec() }),
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

fn times(launches: usize) -> String {
    if launches == 1 { "1 launch".to_owned() } else { format!("{launches} launches") }
}
