//! Reports of tuning: the configurations that were tried, and the chosen one.

use std::fmt;
use std::time::Duration;

use kernel_lang::Schedule;

use super::TuneConfig;
use crate::Device;

/// The trials for one key of a kernel, in the order of the configurations. `Display` prints them as a table.
#[derive(Clone, Debug)]
pub struct Report<C> {
    /// The kernel.
    pub kernel: &'static str,
    /// The device on which the kernel was tuned.
    pub device: Device,
    /// One trial for each configuration.
    pub trials: Vec<Trial<C>>,
    /// The origin of the times.
    pub origin: Origin,
    /// The time that the launch spent on tuning: the search for a record and, if there is none, the timing of the configurations.
    pub took: Duration,
}

/// The origin of the times in a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// This process timed the configurations.
    Timed,
    /// Another process timed them: a record on disk.
    Stored,
    /// A committed record, embedded in the program: `#[autotune(records = "..")]`.
    Committed,
    /// There are no times: nothing is timed on the CPU, or if a configuration has no rivals.
    Untimed,
}

/// The result of one configuration.
#[derive(Clone, Debug)]
pub struct Trial<C> {
    /// The configuration, with the results of heuristics at the time of tuning.
    pub config: C,
    /// The time, or the reason why there is none.
    pub outcome: Outcome,
    /// Whether launches use this configuration.
    pub chosen: bool,
}

/// The time of a configuration, or the reason why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The configuration was timed. Few samples mean that it was far behind.
    Measured {
        /// The median time in microseconds; on a simulated GPU the estimate of its clock. Short kernels with equal medians can differ: the choice compares
        /// means, see [`tune`](crate::tune).
        median_us: f64,
        /// The number of timed runs.
        samples: usize,
    },
    /// The configuration does not compile, load or launch, or `verify` found different results.
    Failed(String),
    /// `prune` rejects the configuration for these arguments, or ranks others as likely to be faster.
    Pruned,
    /// The configuration was not timed: it has no rivals, or the device is the CPU, which takes the first configuration.
    Untimed,
}

/// Formats a configuration as its constants and its schedule. Fields of the schedule that nearly always have the default are left out if
/// they do.
#[doc(hidden)]
pub fn debug_config(f: &mut fmt::Formatter<'_>, constants: &[(&str, &dyn fmt::Debug)], schedule: Schedule) -> fmt::Result {
    let mut config = f.debug_struct("Config");
    for (name, value) in constants {
        config.field(name, value);
    }
    config.field("num_warps", &schedule.num_warps);
    if schedule.num_ctas != Schedule::DEFAULT.num_ctas {
        config.field("num_ctas", &schedule.num_ctas);
    }
    config.field("num_stages", &schedule.num_stages);
    if let Some(registers) = schedule.maxnreg {
        config.field("maxnreg", &registers);
    }
    config.finish()
}

impl<C: TuneConfig> Report<C> {
    /// The configuration that launches use.
    pub fn chosen(&self) -> Option<&Trial<C>> {
        self.trials.iter().find(|trial| trial.chosen)
    }

    /// The fastest of the other configurations.
    pub fn runner_up(&self) -> Option<&Trial<C>> {
        let median = |trial: &&Trial<C>| match trial.outcome {
            Outcome::Measured { median_us, .. } => median_us,
            _ => f64::INFINITY,
        };
        let others = self.trials.iter().filter(|trial| !trial.chosen && median(trial).is_finite());
        others.min_by(|a, b| median(a).total_cmp(&median(b)))
    }
}

impl<C: fmt::Debug> fmt::Display for Report<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} on {} ({})", self.kernel, self.device, self.device.name())?;
        for Trial { config, outcome, chosen } in &self.trials {
            let mark = if *chosen { '*' } else { ' ' };
            match outcome {
                Outcome::Measured { median_us, samples } => {
                    writeln!(f, "{mark} {median_us:>10.1} us  {samples:>3} runs  {config:?}")?;
                }
                Outcome::Failed(reason) => {
                    writeln!(f, "{mark} {:>10}               {config:?}: {}", "failed", in_short(reason))?;
                }
                Outcome::Pruned => writeln!(f, "{mark} {:>10}               {config:?}", "pruned")?,
                Outcome::Untimed => writeln!(f, "{mark} {:>10}               {config:?}", "untimed")?,
            }
        }
        Ok(())
    }
}

/// A reason in one line: the first line of an error and, if compiler errors follow, the first of these.
fn in_short(reason: &str) -> String {
    let mut lines = reason.lines();
    let first = lines.next().unwrap_or_default();
    match lines.next().and_then(|line| line.strip_prefix("error: ")) {
        Some(cause) => format!("{first}: {cause}"),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_in_short_says_why() {
        let compile =
            "kernel `k` does not compile for `B = 0`\nerror: the extent of a tile is a positive number, not 0\n --> k.rs:1:1\nhelp: ..";
        assert_eq!(in_short(compile), "kernel `k` does not compile for `B = 0`: the extent of a tile is a positive number, not 0");
        assert_eq!(in_short("kernel `k` cannot start\nhelp: use fewer warps"), "kernel `k` cannot start");
    }
}
