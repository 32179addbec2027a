//! A launch of which only the place is open, and what it does on each backend.

use kernel_lang::Schedule;

use crate::args::Args;
use crate::fact::Key;
use crate::gpu::Gpu;
use crate::profile::{self, Observation};
use crate::{Device, Result, background, cpu, graph, reporting};

/// Arguments, a variant of the kernel, and how many programs run.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c, 'a, const WORDS: usize, const KEY: usize> {
    pub(crate) args: &'c Args<'a, WORDS>,
    /// By what the variant is found.
    pub(crate) key: Key<KEY>,
    /// The kernel's own, unless tuning chose another; the CPU has none.
    pub(crate) schedule: Option<Schedule>,
    /// No side is 0.
    pub(crate) grid: [u32; 3],
    pub(crate) mode: Mode,
}

/// How a launch is to run, beside where.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mode {
    /// Does it report the first access outside a tensor?
    pub(crate) checked: bool,
    /// Is what is not there yet compiled on another thread?
    pub(crate) in_background: bool,
}

impl<const WORDS: usize, const KEY: usize> Call<'_, '_, WORDS, KEY> {
    /// Runs it on a GPU, or queues it.
    #[inline]
    pub(crate) fn run<G: Gpu>(&self, gpu: &G) -> Result<()> {
        if profile::is_on() {
            return self.profiled(gpu.device(), |observation| self.run_observed(gpu, Some(observation)));
        }
        self.run_observed(gpu, None)
    }

    /// Runs it on the CPU.
    #[inline]
    pub(crate) fn run_on_cpu(&self) -> Result<()> {
        if profile::is_on() {
            return self.profiled(Device::cpu(), |observation| self.run_on_cpu_observed(Some(observation)));
        }
        self.run_on_cpu_observed(None)
    }

    #[cold]
    fn profiled(&self, device: Device, run: impl FnOnce(&mut Observation) -> Result<()>) -> Result<()> {
        let mut observation = Observation::begin();
        let outcome = run(&mut observation);
        observation.end(self, device, &outcome);
        outcome
    }

    #[inline]
    fn run_observed<G: Gpu>(&self, gpu: &G, observation: Option<&mut Observation>) -> Result<()> {
        if self.mode.checked || self.args.kernel().prints() {
            // Whoever looks for mistakes, or reads lines, sees the kernel as it is written.
            return reporting::run(gpu, &Call { key: self.key.without_facts(), ..*self }, observation);
        }
        let loaded = self.variant(gpu)?;
        if graph::is_capturing() {
            return graph::capture_on_gpu(gpu, self.args, loaded, self.grid);
        }
        // SAFETY: the function takes these words.
        unsafe { profile::start(observation, gpu, self.args, loaded, self.grid, &self.args.params()) }
    }

    #[inline]
    fn run_on_cpu_observed(&self, observation: Option<&mut Observation>) -> Result<()> {
        let Call { args, grid, mode: Mode { checked, .. }, .. } = *self;
        let program = args.kernel().on_cpu(self.key.general())?;
        if graph::is_capturing() {
            return graph::capture_on_cpu(args, program, grid, checked);
        }
        profile::start_on_cpu(observation, || {
            if args.kernel().prints() {
                return cpu::run_printing(args.kernel(), &program, args.words(), grid, checked);
            }
            cpu::run(args.kernel().name(), &program, args.words(), grid, checked)
        })
    }

    /// The function that a GPU runs.
    #[inline]
    pub(crate) fn variant<G: Gpu>(&self, gpu: &G) -> Result<&'static G::Loaded> {
        let kernel = self.args.kernel();
        // Without a compiler in the program, another variant has to do for ever.
        if self.mode.in_background || cfg!(not(feature = "jit")) {
            return background::at_once(kernel, gpu, &self.key, self.schedule);
        }
        kernel.on_gpu(gpu, self.key.as_ref(), self.schedule)
    }
}
