//! Launches of untrusted packages with configurations: each runs the first one that compiles, which nothing times.

use kernel_lang::ir::MAX_STAGES;

use super::launch::is_of_config;
use super::recorded::{RecordedTuning, Runner};
use crate::kernel::prepare;
use crate::launch::recording;
use crate::ops::OpsError;
use crate::ops::recorder::{Binding, RecordedLaunch};
use crate::{Device, Error, Result};

/// Runs the first configuration. It has no tuner, so it neither reads records nor writes them.
pub(super) struct Untimed;

impl Runner for Untimed {
    fn run(&self, launch: &RecordedLaunch, tuning: &RecordedTuning, binding: Binding<'_, '_>) -> Result<()> {
        match tuning.first() {
            Some(config) => recording::run_config(launch, config, binding),
            None => Err(Error::NoConfig { kernel: launch.kernel(), device: Device::cpu(), failures: Vec::new() }),
        }
    }
}

/// The launch with these configurations, of which those that its author has pruned are left out.
pub(super) fn of_stranger(mut launch: RecordedLaunch, mut tuning: RecordedTuning) -> Result<RecordedLaunch> {
    let refused = |reason: &str| Err(Error::Ops(OpsError::NotAKernel { name: launch.kernel().to_owned(), reason: reason.to_owned() }));
    tuning.configs.retain(|config| !config.is_pruned);
    if tuning.configs.is_empty() {
        return refused("`prune` rejects all configurations of a launch");
    }
    // The compiler tries smaller numbers of stages one after the other.
    if tuning.configs.iter().any(|config| i128::from(config.schedule.num_stages) > MAX_STAGES) {
        return refused("a configuration has more stages than a loop can");
    }
    if let Ok(parts) = &mut tuning.parts {
        parts.records.clear();
    }
    launch.tuning = Some(tuning.into());
    Ok(launch)
}

impl RecordedLaunch {
    /// Compiles the [untrusted](crate::ops::parts::KernelParts::untrusted) kernel of the launch for a device, and returns how many bytes of scratch memory each
    /// thread of the CPU takes for it. Of several configurations, the launch keeps the first one that compiles.
    ///
    /// `allow` takes the bytes that a compilation takes at most, before it begins.
    ///
    /// # Errors
    /// Those of `allow`, [`Error::Compile`], [`OpsError::KernelMemory`], and those of a launch that compiles.
    pub fn prepare<E: From<Error>>(&mut self, device: &Device, allow: &mut dyn FnMut(usize) -> Result<(), E>) -> Result<usize, E> {
        let Some(tuning) = self.tuning.clone() else {
            allow(prepare::compile_bytes(self.kernel, &self.key)?)?;
            return Ok(prepare::compile(self.kernel, device, &self.key, None)?);
        };
        let mut failure = None;
        for config in tuning.configs() {
            allow(prepare::compile_bytes(self.kernel, &config.key)?)?;
            match prepare::compile(self.kernel, device, &config.key, Some(config.schedule)) {
                Ok(scratch_bytes) => {
                    (self.key, self.grid) = (config.key.clone(), config.grid.clone());
                    let (key, parts) = (tuning.key.clone(), tuning.parts.clone());
                    self.tuning = Some(RecordedTuning { key, configs: vec![config.clone()], parts, runner: Box::new(Untimed) }.into());
                    return Ok(scratch_bytes);
                }
                // Another configuration may be smaller.
                Err(error) if is_of_config(&error) => failure = failure.or(Some(error)),
                Err(error) => return Err(error.into()),
            }
        }
        let none = || Error::NoConfig { kernel: self.kernel(), device: *device, failures: Vec::new() };
        Err(failure.unwrap_or_else(none).into())
    }
}
