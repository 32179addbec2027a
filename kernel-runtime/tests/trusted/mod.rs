//! Kernels and launchers written by hand. Where `#[kernel]` writes them, it promises that they belong together; here the tests do, whose texts, parameters and
//! launchers stand side by side. What is wrong with one is caught by what it is a test of.

#![allow(dead_code, reason = "each program of tests uses some of these")]

use kernel_runtime::private::{Args, AutotunedLaunch, Kernel, Launch, Param, Rules, Schedule, TuneConfig, Tuner, Variant};

pub(crate) const fn kernel(
    name: &'static str,
    ir: &'static str,
    schedule: Schedule,
    params: &'static [Param],
    variants: &'static [Variant],
) -> Kernel {
    // SAFETY: see above.
    unsafe { Kernel::new(name, ir, schedule, params, variants) }
}

pub(crate) fn launch<const WORDS: usize, const KEY: usize>(args: Args<'_, WORDS>, key: [u64; KEY]) -> Launch<'_, WORDS, KEY> {
    // SAFETY: see above.
    unsafe { Launch::new(args, key) }
}

pub(crate) fn autotuned<'a, const WORDS: usize, const KEY: usize, C: TuneConfig>(
    args: Args<'a, WORDS>,
    key: [u64; KEY],
    tuner: &'static Tuner<C>,
    rules: &'static Rules<C, WORDS>,
) -> AutotunedLaunch<'a, WORDS, KEY, C> {
    // SAFETY: see above.
    unsafe { AutotunedLaunch::new(args, key, tuner, rules) }
}
