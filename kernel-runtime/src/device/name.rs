//! Device names, on the command line and in the environment.

use std::str::FromStr;
use std::sync::OnceLock;

use kernel_lang::target::Target;

use crate::{Device, Error, Result, launch::prints, sim};

/// The environment variable that names the default device.
const VARIABLE: &str = "GALATEA_DEVICE";

impl Device {
    /// The default device. The environment variable `GALATEA_DEVICE` names it, in the format of [`Device::parse`]. Without the variable, it is the
    /// first CUDA GPU. If there is no driver or no GPU, it is the CPU, and one line on the standard error output says so. `GALATEA_DEVICE=cpu`
    /// selects the CPU without that line. The variable is read once per process.
    ///
    /// # Errors
    /// Those of [`Device::parse`]. A GPU that exists but cannot be opened is an error: the CPU does not replace it silently.
    #[expect(clippy::should_implement_trait, reason = "opening a device can fail")]
    pub fn default() -> Result<Device> {
        static CHOSEN: OnceLock<Device> = OnceLock::new();
        if let Some(device) = CHOSEN.get() {
            return Ok(*device);
        }
        let device = match std::env::var_os(VARIABLE) {
            Some(name) if !name.is_empty() => named(&name.to_string_lossy(), Some(VARIABLE))?,
            _ => match Device::cuda(0) {
                Err(error @ (Error::NoDriver | Error::NoDevice { .. })) => return Ok(*CHOSEN.get_or_init(|| instead_of_a_gpu(&error))),
                device => device?,
            },
        };
        Ok(*CHOSEN.get_or_init(|| device))
    }

    /// The device with this name: `cpu`; `cuda` or `cuda:1`, a CUDA GPU by its number; `sim` or `sim:sm_80`, a simulated GPU by its target. The
    /// `Display` of a device is its name.
    ///
    /// ```
    /// # use kernel_runtime::{Device, Result};
    /// # fn main() -> Result<()> {
    /// assert_eq!(Device::parse("cpu")?, Device::cpu());
    /// assert!("gpu".parse::<Device>().is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownDevice`]; [`Error::NoSimulator`] for `sim` in a program without the feature `sim`; those of [`Device::cuda`].
    pub fn parse(name: &str) -> Result<Device> {
        named(name, None)
    }
}

/// The CPU, after a line on the standard error output that states the reason.
fn instead_of_a_gpu(error: &Error) -> Device {
    let reason = match error {
        Error::NoDriver => "no CUDA driver is installed",
        _ => "the CUDA driver sees no GPU",
    };
    prints::tell(format_args!("galatea: {reason}, so kernels run on the CPU; {VARIABLE}=cpu asks for that without this line\n"));
    Device::cpu()
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Device> {
        Device::parse(name)
    }
}

/// The device with this name. `variable` is the environment variable that held the name, if any.
fn named(name: &str, variable: Option<&'static str>) -> Result<Device> {
    let unknown = || Error::UnknownDevice { name: name.to_owned(), variable, known: known() };
    let (kind, which) = name.split_once(':').map_or((name, None), |(kind, which)| (kind, Some(which)));
    match (kind, which) {
        ("cpu", None) => Ok(Device::cpu()),
        ("cuda", None) => Device::cuda(0),
        ("cuda", Some(ordinal)) => Device::cuda(ordinal.parse().map_err(|_| unknown())?),
        ("sim", None) => sim::device(sim::DEFAULT_TARGET),
        ("sim", Some(target)) => sim::device(target.parse::<Target>().map_err(|_| unknown())?),
        _ => Err(unknown()),
    }
}

/// The names of all devices that this process can open.
fn known() -> Vec<String> {
    let gpus = (0..Device::cuda_count()).map(|ordinal| format!("cuda:{ordinal}"));
    let simulated = sim::TARGETS.iter().map(|target| format!("sim:{target}"));
    std::iter::once("cpu".to_owned()).chain(gpus).chain(simulated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_a_device() {
        let device = Device::default().unwrap();
        assert_eq!(device, Device::default().unwrap());
        if std::env::var_os(VARIABLE).is_none() {
            assert_eq!(device.is_cuda(), Device::cuda_count() > 0);
        }
        assert!(device.multiprocessors() > 0);
    }

    #[test]
    fn a_device_is_found_by_its_name() {
        for name in known() {
            assert_eq!(Device::parse(&name).unwrap().to_string(), name);
        }
        for wrong in ["", "gpu", "CPU", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "sim:", "sim:sm_1", "sim:90"] {
            match wrong.parse::<Device>() {
                Err(Error::UnknownDevice { name, known, variable: None }) => {
                    assert_eq!(name, wrong);
                    assert_eq!(known[0], "cpu");
                }
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_simulator_is_there_or_the_error_says_how_to_get_it() {
        match Device::parse("sim") {
            Ok(device) => assert!(device.is_sim() && cfg!(feature = "sim")),
            Err(error) => assert!(error.to_string().contains("features = [\"sim\"]") && !cfg!(feature = "sim"), "{error}"),
        }
    }
}
