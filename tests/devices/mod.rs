//! The devices that every test runs on: each is a column of trials, `cpu::masks::scalar_mask`, `sim::masks::scalar_mask` and so on.
//!
//! The simulated GPU is of the best target; `GALATEA_SIM=sm_80` names another. A GPU that is not there is a column of skipped trials.

use galatea::prelude::*;
use libtest_mimic::{Failed, Trial};

/// A device, or why its trials are skipped, under the name that its trials begin with.
pub(crate) struct Column {
    name: &'static str,
    device: std::result::Result<Device, &'static str>,
}

/// The CPU, the simulated GPU and the first CUDA GPU.
pub(crate) fn columns() -> [Column; 3] {
    let simulated = match std::env::var("GALATEA_SIM") {
        Ok(target) => Device::parse(&format!("sim:{target}")),
        Err(_) => Device::parse("sim"),
    };
    let cuda = match Device::cuda(0) {
        Ok(device) => Ok(device),
        Err(Error::NoDriver | Error::NoDevice { .. }) => Err("skipped: no GPU"),
        Err(error) => panic!("{error}"),
    };
    [
        Column { name: "cpu", device: Ok(Device::cpu()) },
        Column { name: "sim", device: Ok(simulated.unwrap_or_else(|error| panic!("{error}"))) },
        Column { name: "cuda", device: cuda },
    ]
}

impl Column {
    /// The trial of a test in this column.
    pub(crate) fn trial(&self, name: &str, test: impl FnOnce(Device) -> std::result::Result<(), Failed> + Send + 'static) -> Trial {
        let name = format!("{}::{name}", self.name);
        match self.device {
            Ok(device) => Trial::test(name, move || test(device)),
            Err(reason) => Trial::test(name, || Ok(())).with_ignored_flag(true).with_kind(reason),
        }
    }
}
