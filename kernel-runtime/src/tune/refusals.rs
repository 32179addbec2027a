//! Refused configurations, and the launches that try them again.
//!
//! A refusal concerns one launch and the variant that this launch requested: the launch runs the next best configuration, and the key keeps
//! its winner. Heuristics and sizes differ between launches, and the driver's free resources change over time, so a refused variant may run
//! later. Retries become rare, so that a variant that never runs costs little:
//!
//! | reason for the refusal | next attempt |
//! |---|---|
//! | it does not compile, needs more shared memory than there is, or the GPU is too old for it | never: the same variant cannot run later |
//! | the driver refused its code or its launch: resources may be short | at the second, fourth, eighth, .. launch of the variant, until one succeeds |
//! | its grid is too large | at every launch: the reason is the size of the launch |

use std::sync::atomic::{AtomicU32, Ordering};

use kernel_lang::Schedule;

use crate::Error;
use crate::kernel::append_only_table::Grown;

/// The refused variants of a key's configurations.
#[derive(Debug)]
pub(super) struct Refusals {
    /// The number of variants that have not run since their refusal.
    variants: AtomicU32,
    /// For each variant, the launches since its first refusal; 0 if it has run since.
    launches: Grown<AtomicU32>,
}

/// The count of a variant that is never retried.
const FOR_GOOD: u32 = u32::MAX;

impl Refusals {
    pub(super) const fn new() -> Refusals {
        Refusals { variants: AtomicU32::new(0), launches: Grown::new() }
    }

    /// Returns whether no variant is refused.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.variants.load(Ordering::Relaxed) == 0
    }

    /// Returns whether this launch tries the variant. Counts the launch.
    pub(super) fn is_tried(&self, key: &[u64], schedule: Schedule) -> bool {
        let Some(launches) = self.launches.find(Some(schedule), key) else { return true };
        let counted = |launches: u32| (launches != 0 && launches < FOR_GOOD - 1).then(|| launches + 1);
        match launches.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted) {
            Ok(before) => (before + 1).is_power_of_two(),
            Err(before) => before == 0,
        }
    }

    /// Notes that a launch of the variant was refused.
    pub(super) fn note(&self, key: &[u64], schedule: Schedule, error: &Error) {
        let is_for_good = match error {
            Error::GridTooLarge { .. } => return,
            Error::Jit { .. } | Error::LaunchRefused { .. } => false,
            _ => true,
        };
        let launches = self.launches.keep(Some(schedule), key, AtomicU32::new(0));
        let before = launches.fetch_max(if is_for_good { FOR_GOOD } else { 1 }, Ordering::Relaxed);
        if before == 0 {
            self.variants.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that a launch of the variant succeeded.
    pub(super) fn forget(&self, key: &[u64], schedule: Schedule) {
        if let Some(launches) = self.launches.find(Some(schedule), key)
            && launches.swap(0, Ordering::Relaxed) != 0
        {
            self.variants.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::kernel::gpu::{Gpu, Image};
    use crate::kernel::{Kernel, Tables, Variant};
    use crate::launch::args::Args;
    use crate::tune::{AutotunedLaunch, Origin, Outcome, Report, Rules, Trial, TuneConfig, Tuner};
    use crate::{Device, Result, Stream};

    /// A fake GPU that launches nothing and refuses the variants in `refused`.
    struct Machine {
        tables: Tables<String>,
        refused: Mutex<Vec<&'static str>>,
        launched: Mutex<Vec<String>>,
    }

    #[derive(Clone, Copy)]
    struct Fake(&'static Machine);

    impl Fake {
        fn new() -> Fake {
            let (tables, refused, launched) = (Tables::new(), Mutex::default(), Mutex::default());
            Fake(Box::leak(Box::new(Machine { tables, refused, launched })))
        }

        fn refuse(self, variants: &[&'static str]) {
            *self.0.refused.lock().unwrap() = variants.to_vec();
        }

        /// The launches since the last call, including refused ones.
        fn launched(self) -> Vec<String> {
            std::mem::take(&mut *self.0.launched.lock().unwrap())
        }
    }

    impl Gpu for Fake {
        type Loaded = String;
        const IS_SIMULATED: bool = true;
        type Anywhere = Fake;

        fn anywhere(&self) -> Result<Fake> {
            Ok(*self)
        }

        fn device(&self) -> Device {
            Device::cpu()
        }

        fn number(&self) -> usize {
            0
        }

        fn count() -> usize {
            1
        }

        fn compute_capability(&self) -> (i32, i32) {
            (8, 0)
        }

        fn stream(&self) -> Stream {
            Device::cpu().stream().clone()
        }

        fn tables<'k>(&self, _: &'k Kernel) -> &'k Tables<String> {
            &self.0.tables
        }

        fn load(&self, image: &Image<'_>) -> Result<String> {
            Ok(image.ptx.to_owned())
        }

        fn cache_bytes(&self) -> usize {
            0
        }

        unsafe fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
            unreachable!("nothing is tuned")
        }

        unsafe fn zero(&self, _: u64, _: usize) -> Result<()> {
            unreachable!("nothing is tuned")
        }

        fn code(_: &String) -> crate::replay::Code {
            unreachable!("nothing is captured")
        }

        unsafe fn start<const WORDS: usize>(&self, _: &Args<'_, WORDS>, loaded: &String, _: [u32; 3], _: &[&u64]) -> Result<()> {
            self.0.launched.lock().unwrap().push(loaded.clone());
            if self.0.refused.lock().unwrap().contains(&loaded.as_str()) {
                let (code, description) = ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES".to_owned(), String::new());
                return Err(Error::LaunchRefused { kernel: "k", threads: 128, shared_bytes: 0, code, description });
            }
            Ok(())
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Config(u64);

    impl TuneConfig for Config {
        fn write_key(&self, key: &mut [u64]) {
            key[0] = self.0;
        }

        fn schedule(&self) -> Schedule {
            Schedule::DEFAULT
        }
    }

    const fn variant(key: &'static [u64], ptx: &'static str) -> Variant {
        Variant { key, schedule: Schedule::DEFAULT, target: "sm_80", entry: "k", shared_bytes: 0, ptx }
    }

    const VARIANTS: [Variant; 3] = [variant(&[1], "slow"), variant(&[2], "fast"), variant(&[3], "middle")];
    const CONFIGS: [Config; 3] = [Config(1), Config(2), Config(3)];

    /// Launches of a key whose configurations were measured: `fast` won, `middle` was second.
    fn launcher() -> (Fake, impl Fn(u32) -> Result<()>) {
        let gpu = Fake::new();
        // SAFETY: the fake device runs none of the code, which has no parameters.
        let kernel: &'static Kernel = Box::leak(Box::new(unsafe { Kernel::new("k", "", Schedule::DEFAULT, &[], &VARIANTS) }));
        let tuner: &'static Tuner<Config> = Box::leak(Box::new(Tuner::new(&CONFIGS, &[])));
        let launch = move |programs: u32| {
            // SAFETY: as above.
            let launch = unsafe { AutotunedLaunch::<0, 1, Config>::new(Args::new(kernel), [0], tuner, &Rules::NONE) };
            // The winner has the largest grid.
            launch.grid(move |config| (1, if config.0 == 2 { programs } else { 1 }))
        };
        let trials = CONFIGS.iter().zip([9.0, 1.0, 3.0]).map(|(&config, median_us)| {
            let outcome = Outcome::Measured { median_us, samples: 9 };
            Trial { config, outcome, chosen: config.0 == 2 }
        });
        let report = Report { kernel: "k", device: Device::cpu(), trials: trials.collect(), origin: Origin::Timed, took: Duration::ZERO };
        launch(1).remember_as_tuned(&gpu, report, 1);
        (gpu, move |programs| launch(programs).launch_on(&gpu))
    }

    #[test]
    fn a_refused_launch_runs_the_next_best_and_the_winner_stays() {
        let (gpu, launch) = launcher();
        launch(1).unwrap();
        assert_eq!(gpu.launched(), ["fast"]);
        gpu.refuse(&["fast"]);
        launch(1).unwrap();
        assert_eq!(gpu.launched(), ["fast", "middle"]);
        gpu.refuse(&[]);
        launch(1).unwrap();
        launch(1).unwrap();
        assert_eq!(gpu.launched(), ["fast", "fast"], "one refusal changes nothing");
    }

    #[test]
    fn retries_of_a_refused_configuration_become_rare() {
        let (gpu, launch) = launcher();
        gpu.refuse(&["fast", "middle"]);
        let tried: Vec<usize> = (1..=20).filter(|_| (launch(1).unwrap(), gpu.launched().contains(&"fast".to_owned())).1).collect();
        assert_eq!(tried, [1, 2, 4, 8, 16]);
        gpu.refuse(&[]);
        let back: Vec<Vec<String>> = (21..=34).map(|_| (launch(1).unwrap(), gpu.launched()).1).collect();
        // The second best variant has its own count.
        assert!(back[..11].iter().all(|launched| *launched == ["slow"]), "{back:?}");
        assert!(back[11..].iter().all(|launched| *launched == ["fast"]), "{back:?}");
    }

    #[test]
    fn if_everything_is_refused_the_winner_says_why() {
        let (gpu, launch) = launcher();
        gpu.refuse(&["fast", "middle", "slow"]);
        for turn in 1..10 {
            assert!(matches!(launch(1), Err(Error::LaunchRefused { .. })), "{turn}");
            assert_eq!(gpu.launched()[0], "fast");
        }
        gpu.refuse(&[]);
        launch(1).unwrap();
    }

    #[test]
    fn a_grid_that_is_too_large_concerns_its_launch_alone() {
        let (gpu, launch) = launcher();
        for _ in 0..5 {
            launch(70_000).unwrap();
            launch(1).unwrap();
            assert_eq!(gpu.launched(), ["middle", "fast"]);
        }
    }

    #[test]
    fn a_configuration_that_does_not_compile_is_not_retried() {
        let refusals = Refusals::new();
        let error = Error::TooOld { kernel: "k", device: Device::cpu(), capability: (7, 0) };
        assert!(refusals.are_none() && refusals.is_tried(&[1], Schedule::DEFAULT));
        refusals.note(&[1], Schedule::DEFAULT, &error);
        assert!(!refusals.are_none() && (0..100).all(|_| !refusals.is_tried(&[1], Schedule::DEFAULT)));
        // Another variant of the same configuration, as heuristics or facts produce it.
        let other = Schedule { num_warps: 8, ..Schedule::DEFAULT };
        assert!(refusals.is_tried(&[1], other) && refusals.is_tried(&[2], Schedule::DEFAULT));
    }
}
