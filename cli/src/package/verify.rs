//! `galatea verify`: checks all of a package.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kernel_package::Package;
use kernel_runtime::Target;

use super::trust::Trust;
use crate::output::{print, tell};

/// Check a package: checksums, kernels, launches, constants, and code for targets
#[derive(Args)]
#[command(after_help = "Examples:
  galatea verify model.gpk
  galatea verify model.gpk --target sm_80 --target sm_90a
  galatea verify downloaded.gpk --untrusted

The exit status is 1 if a check fails.")]
pub(crate) struct Verify {
    /// Package
    file: PathBuf,
    /// Check that each launch has code that runs on GPUs of this architecture [default: any architecture]
    #[arg(long = "target", value_name = "TARGET", value_parser = target, conflicts_with = "untrusted")]
    targets: Vec<Target>,
    #[command(flatten)]
    trust: Trust,
}

/// A target by its name.
fn target(name: &str) -> Result<Target, String> {
    name.parse().map_err(|_| format!("there are {}", Target::ALL.map(|target| target.to_string()).join(", ")))
}

impl Verify {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let checks = match self.trust.limits() {
            Some(limits) => Package::check_untrusted(&self.file, limits),
            None => Package::check(&self.file, &self.targets),
        };
        let checks = checks.map_err(|error| error.to_string())?;
        let mut text = String::new();
        for check in &checks {
            text += &format!("{}  {}\n", if check.errors.is_empty() { "ok   " } else { "wrong" }, check.subject);
        }
        print(&self.trust.shown(text))?;
        let mut errors = checks.iter().flat_map(|check| &check.errors).peekable();
        let code = if errors.peek().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        errors.for_each(|error| tell(&self.trust.shown(format!("error: {}: {error}", self.file.display()))));
        Ok(code)
    }
}
