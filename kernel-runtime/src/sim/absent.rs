//! Replacements for the simulator in a program without it: types that have no values, so that every match arm for them is dead code.

use kernel_lang::target::Target;

use crate::kernel::gpu::{Gpu, Image};
use crate::kernel::{Kernel, Tables};
use crate::launch::args::{Args, Region};
use crate::replay::Code;
use crate::tensor::memory::Init;
use crate::{Device, Error, Result, Stream};

/// The targets that can be simulated.
pub(crate) const TARGETS: &[Target] = &[];

/// The target of the device name `sim`.
pub(crate) const DEFAULT_TARGET: Target = Target::ALL[Target::ALL.len() - 1];

/// No type implements this trait. Without the feature `sim`, no call of [`Device::sim`] compiles, and the error is this message.
#[diagnostic::on_unimplemented(
    message = "`Device::sim` needs the feature `sim`",
    label = "this program is built without simulated GPUs",
    note = "write `galatea = {{ version = \"..\", features = [\"sim\"] }}` in `Cargo.toml`, or build with `--features galatea/sim`"
)]
pub trait NeedsFeatureSim {}

impl Device {
    /// Requires the feature `sim`.
    #[doc(hidden)]
    pub fn sim<T: NeedsFeatureSim>(_: T) -> Result<Device> {
        Err(Error::NoSimulator)
    }
}

pub(crate) fn device(_: Target) -> Result<Device> {
    Err(Error::NoSimulator)
}

pub(crate) enum Sim {}

#[derive(Clone, Copy)]
pub(crate) struct SimGpu {
    pub(crate) device: Device,
    pub(crate) sim: &'static Sim,
}

#[derive(Clone, Copy)]
pub(crate) enum Loaded {}

pub(crate) enum SimBuffer {}

impl Loaded {
    pub(crate) fn is_same(&self, _: &Loaded) -> bool {
        match *self {}
    }
}

/// The clock of simulated GPUs. Nothing reads it, because there is no such GPU.
pub(crate) fn now() -> std::time::Duration {
    std::time::Duration::ZERO
}

impl Sim {
    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn target(&self) -> Target {
        match *self {}
    }

    pub(crate) fn compute_capability(&self) -> (i32, i32) {
        match *self {}
    }

    pub(crate) fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn fill(&self, _: u64, _: &[u8], _: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn multiprocessors(&self) -> usize {
        match *self {}
    }

    pub(crate) fn memory(&self) -> (usize, usize) {
        match *self {}
    }
}

impl SimGpu {
    pub(crate) fn run(self, _: &'static str, loaded: &Loaded, _: [u32; 3], _: &[u64], _: impl Iterator<Item = Region>) -> Result<()> {
        match *loaded {}
    }
}

impl Gpu for SimGpu {
    type Loaded = Loaded;
    const IS_SIMULATED: bool = true;

    type Anywhere = SimGpu;

    fn anywhere(&self) -> Result<SimGpu> {
        match *self.sim {}
    }

    fn device(&self) -> Device {
        self.device
    }

    fn number(&self) -> usize {
        match *self.sim {}
    }

    fn count() -> usize {
        0
    }

    fn compute_capability(&self) -> (i32, i32) {
        match *self.sim {}
    }

    fn stream(&self) -> Stream {
        match *self.sim {}
    }

    fn tables<'k>(&self, _: &'k Kernel) -> &'k Tables<Loaded> {
        match *self.sim {}
    }

    fn load(&self, _: &Image<'_>) -> Result<Loaded> {
        match *self.sim {}
    }

    fn cache_bytes(&self) -> usize {
        match *self.sim {}
    }

    unsafe fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
        match *self.sim {}
    }

    unsafe fn zero(&self, _: u64, _: usize) -> Result<()> {
        match *self.sim {}
    }

    fn code(loaded: &Loaded) -> Code {
        match *loaded {}
    }

    unsafe fn start<const WORDS: usize>(&self, _: &Args<'_, WORDS>, _: &Loaded, _: [u32; 3], _: &[&u64]) -> Result<()> {
        match *self.sim {}
    }
}

impl SimBuffer {
    pub(crate) fn new(sim: &'static Sim, _: Device, _: usize, _: Init) -> Result<SimBuffer> {
        match *sim {}
    }

    pub(crate) fn device(&self) -> Device {
        match *self {}
    }

    pub(crate) fn address(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn write(&self, _: usize, _: &[u8]) -> Result<()> {
        match *self {}
    }

    pub(crate) fn read(&self, _: usize, _: &mut [u8]) -> Result<()> {
        match *self {}
    }

    pub(crate) fn copy_to(&self, _: usize, _: usize, _: &SimBuffer, _: usize) -> Result<()> {
        match *self {}
    }

    pub(crate) fn fill(&self, _: usize, _: usize, _: usize, _: u64) -> Result<()> {
        match *self {}
    }
}
