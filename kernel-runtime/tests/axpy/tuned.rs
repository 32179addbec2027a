//! The same kernel, autotuned.

use kernel_runtime::Tensor;
use kernel_runtime::private::{Args, AutotunedLaunch, Element, Rules, Schedule, TuneConfig, Tuner};

use crate::axpy::AXPY;

/// A configuration, as `#[autotune]` makes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) block_size: usize,
    pub(crate) num_warps: u32,
}

impl TuneConfig for Config {
    fn write_key(&self, key: &mut [u64]) {
        key[1] = self.block_size as u64;
    }

    fn schedule(&self) -> Schedule {
        Schedule { num_warps: self.num_warps, ..Schedule::DEFAULT }
    }
}

/// A configuration with blocks of that many elements.
pub(crate) const fn of(block_size: usize, num_warps: u32) -> Config {
    Config { block_size, num_warps }
}

/// y = x + y, autotuned.
pub(crate) fn tuned<'a>(
    x: &'a Tensor<f32>,
    y: &'a mut Tensor<f32>,
    tuner: &'static Tuner<Config>,
    rules: &'static Rules<Config, 6>,
) -> AutotunedLaunch<'a, 6, 2, Config> {
    let n = x.len();
    let mut args = Args::new(&AXPY);
    args.scalar(1.0f32);
    args.pointer("x", x);
    args.pointer_mut("y", y);
    args.scalar(n);
    crate::trusted::autotuned(args, [f32::CODE, 0], tuner, rules)
}
