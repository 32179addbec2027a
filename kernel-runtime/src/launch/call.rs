//! A launch that is complete except for its device, and how each backend runs it.

use std::panic::Location;

use kernel_lang::Schedule;

use crate::kernel::gpu::Gpu;
use crate::launch::args::Args;
use crate::launch::fact::Key;
use crate::profile::{self, Observation};
use crate::{Device, Result, kernel::background, kernel::cpu, launch::device_reports, replay};

/// The arguments, the variant key, the grid and the options of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c, 'a, const WORDS: usize, const KEY: usize> {
    pub(crate) args: &'c Args<'a, WORDS>,
    /// The key that selects the variant.
    pub(crate) key: Key<KEY>,
    /// The schedule that tuning chose; `None` means the kernel's own. The CPU has no schedules.
    pub(crate) schedule: Option<Schedule>,
    /// The number of programs along each axis, at least 1.
    pub(crate) grid: [u32; 3],
    pub(crate) mode: Mode,
}

/// The options of a launch, apart from its device.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mode {
    /// Whether the launch reports the first access outside a tensor.
    pub(crate) checked: bool,
    /// Whether another thread compiles a missing variant.
    pub(crate) in_background: bool,
}

impl<const WORDS: usize, const KEY: usize> Call<'_, '_, WORDS, KEY> {
    /// Runs the launch on a GPU, or queues it there. A profile shows the caller's line.
    #[inline]
    #[track_caller]
    pub(crate) fn run<G: Gpu>(&self, gpu: &G) -> Result<()> {
        if profile::is_on() {
            return self.profiled(gpu.device(), |observation| self.run_observed(gpu, Some(observation)));
        }
        self.run_observed(gpu, None)
    }

    /// Runs the launch on the CPU. A profile shows the caller's line.
    #[inline]
    #[track_caller]
    pub(crate) fn run_on_cpu(&self) -> Result<()> {
        if profile::is_on() {
            return self.profiled(Device::cpu(), |observation| self.run_on_cpu_observed(Some(observation)));
        }
        self.run_on_cpu_observed(None)
    }

    #[cold]
    #[track_caller]
    fn profiled(&self, device: Device, run: impl FnOnce(&mut Observation) -> Result<()>) -> Result<()> {
        let mut observation = Observation::begin();
        let outcome = run(&mut observation);
        observation.end(self, device, &outcome, Location::caller());
        outcome
    }

    #[inline]
    fn run_observed<G: Gpu>(&self, gpu: &G, observation: Option<&mut Observation>) -> Result<()> {
        if self.mode.checked || self.args.kernel().prints() {
            // A launch that checks or prints runs the kernel as it is written, so its variant relies on no facts.
            return device_reports::run(gpu, &Call { key: self.key.without_facts(), ..*self }, observation);
        }
        let loaded = self.variant(gpu)?;
        if replay::is_capturing() {
            return replay::capture_on_gpu(gpu, self.args, loaded, self.grid);
        }
        // SAFETY: the function takes these words.
        self.args.with_params(|params| unsafe { profile::start(observation, gpu, self.args, loaded, self.grid, params) })
    }

    #[inline]
    fn run_on_cpu_observed(&self, observation: Option<&mut Observation>) -> Result<()> {
        let Call { args, grid, mode: Mode { checked, .. }, .. } = *self;
        let program = args.kernel().on_cpu(self.key.general())?;
        if replay::is_capturing() {
            return replay::capture_on_cpu(args, program, grid, checked);
        }
        profile::start_on_cpu(observation, || {
            if args.kernel().prints() {
                return cpu::run_printing(args.kernel(), &program, args.given(), grid, checked);
            }
            cpu::run(args.kernel().name(), &program, args.given(), grid, checked)
        })
    }

    /// Finds the function that a GPU runs, or compiles it.
    #[inline]
    pub(crate) fn variant<G: Gpu>(&self, gpu: &G) -> Result<&'static G::Loaded> {
        let kernel = self.args.kernel();
        // A program without the compiler can only run another variant, now and later.
        if self.mode.in_background || cfg!(not(feature = "jit")) {
            return background::at_once(kernel, gpu, &self.key, self.schedule);
        }
        kernel.on_gpu(gpu, self.key.as_ref(), self.schedule)
    }
}
