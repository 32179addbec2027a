//! What tuning tried and what it chose.

use std::fmt;
use std::time::Duration;

use kernel_lang::Schedule;

use super::TuneConfig;
use crate::Device;

/// What tuning one key of a kernel tried, in the order of the configurations. Printed, it is a table.
#[derive(Clone, Debug)]
pub struct Report<C> {
    /// The kernel.
    pub kernel: &'static str,
    /// Where it was tuned.
    pub device: Device,
    /// One for each configuration.
    pub trials: Vec<Trial<C>>,
    /// Who timed them.
    pub origin: Origin,
    /// How long the launch that tuned took for it: to look for a record, and to time the configurations if there is none.
    pub took: Duration,
}

/// Where the times of a report are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// This process timed the configurations.
    Timed,
    /// A record on disk: another process did.
    Stored,
    /// A record that the program brings along: `#[autotune(records = "..")]`.
    Committed,
    /// Nobody: on the CPU, and of a configuration that has no rivals, there is nothing to time.
    Untimed,
}

/// What became of one configuration.
#[derive(Clone, Debug)]
pub struct Trial<C> {
    /// The configuration, with what heuristics gave when it was tuned.
    pub config: C,
    /// How long it took, or why it did not run.
    pub outcome: Outcome,
    /// Is it the one that launches use?
    pub chosen: bool,
}

/// How long a configuration took, or why it did not run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ran that often, and the median took that long. Few samples mean that it fell far behind.
    Measured {
        /// Microseconds; on a simulated GPU what its clock estimates.
        median_us: f64,
        /// Timed runs.
        samples: usize,
    },
    /// It does not compile, load or launch, or `verify` found that it computes something else.
    Failed(String),
    /// The kernel's `prune` says that it does not fit these arguments, or that others are likely to be faster.
    Pruned,
    /// It was not timed: it has no rivals, or runs on the CPU, where the first configuration is taken.
    Untimed,
}

/// A configuration as it is written: its constants and its schedule, without what is as nearly always.
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

    /// The fastest of the others.
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

/// A reason in one line: how an error begins and, of one that holds the compiler's, the first of those.
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
