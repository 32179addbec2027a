//! The devices that every test runs on: each is a column of trials, named as `Device::parse` reads it: `cpu::masks::scalar_mask`,
//! `sim::masks::scalar_mask`, which is the best target simulated, `sim:sm_80::masks::scalar_mask` and `cuda::masks::scalar_mask`.
//!
//! A GPU that is not there is a column of skipped trials; so is a test that says nothing on a device.

use galatea::prelude::*;
use libtest_mimic::{Failed, Trial};

const NAMES: [&str; 4] = ["cpu", "sim", "sim:sm_80", "cuda"];

/// A device, or why its trials are skipped, under the name that its trials begin with.
pub(crate) struct Column {
    name: &'static str,
    device: std::result::Result<Device, &'static str>,
}

/// The CPU, the simulated GPUs, whose warps take turns in an order that the seed picks, and the first CUDA GPU.
pub(crate) fn columns(seed: u64) -> [Column; NAMES.len()] {
    NAMES.map(|name| {
        let device = match Device::parse(name) {
            Ok(device) => Ok(device),
            Err(Error::NoDriver | Error::NoDevice { .. }) => Err("skipped: no GPU"),
            Err(error) => panic!("{error}"),
        };
        device.iter().for_each(|device| device.set_sim_seed(seed));
        Column { name, device }
    })
}

impl Column {
    /// Is it a simulated GPU of a target for which another column has a newer one?
    #[allow(dead_code, reason = "only `conformance` draws cases")]
    pub(crate) fn is_older_target(&self) -> bool {
        self.name == "sim:sm_80"
    }

    /// Is it a GPU, where kernels take the least time?
    #[allow(dead_code, reason = "only `conformance` has cases for GPUs")]
    pub(crate) fn is_gpu(&self) -> bool {
        self.name == "cuda"
    }

    /// The trial of a test in this column.
    #[allow(dead_code, reason = "`run` and `conformance` say where a test says nothing")]
    pub(crate) fn trial(&self, name: &str, test: impl FnOnce(Device) -> std::result::Result<(), Failed> + Send + 'static) -> Trial {
        self.trial_unless(name, |_| None, test)
    }

    /// The same of a test that says nothing on some devices, and why: `skipped: ..`.
    pub(crate) fn trial_unless(
        &self,
        name: &str,
        reason_to_skip: impl FnOnce(Device) -> Option<&'static str>,
        test: impl FnOnce(Device) -> std::result::Result<(), Failed> + Send + 'static,
    ) -> Trial {
        let name = format!("{}::{name}", self.name);
        match self.device.and_then(|device| reason_to_skip(device).map_or(Ok(device), Err)) {
            Ok(device) => Trial::test(name, move || test(device)),
            Err(reason) => Trial::test(name, || Ok(())).with_ignored_flag(true).with_kind(reason),
        }
    }
}
