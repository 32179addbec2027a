//! Reports of tuning as records on disk, and back: what one process tuned, the next one knows.

use std::fmt::Debug;
use std::time::{Duration, Instant};

#[cfg(feature = "cache")]
use super::found::{is_asked_again, tell};
use super::{Origin, Outcome, Report, Trial, TuneConfig, Tuner};
use crate::cache::{self, Attempt, Record, RecordKey};
use crate::gpu::Gpu;
use crate::kernel::Kernel;
use crate::{Device, driver};

/// A key that nobody has tuned yet. Other processes that want to wait, as long as this lives.
#[must_use = "what is found out should be kept"]
pub(super) struct Unknown {
    of: Box<RecordKey>,
    _turn: Option<cache::Lock>,
}

/// What is known for these values of a tuning key, and the place of what was chosen, if that can be loaded here. `completed` are the configurations
/// with what heuristics give; `key_of` gives the kernel's key with the constants of one.
///
/// What the program brings along comes before what lies on the disk: so all machines do what was committed, whatever they tuned before.
pub(super) fn recall<C: TuneConfig, K: AsRef<[u64]>>(
    kernel: &Kernel,
    gpu: &impl Gpu,
    (tuner, verifies): (&Tuner<C>, bool),
    completed: &[C],
    key_of: impl Fn(C) -> K,
    values: &[u64],
) -> Result<(Report<C>, usize), Unknown> {
    let start = Instant::now();
    let of = record_key(kernel, gpu, tuner.configs(), verifies, values);
    let usable = |record: Record, origin: Origin| {
        let kept = record.clone();
        let (mut report, chosen) = report(record, kernel.name(), gpu.device(), completed)?;
        let config = completed[chosen];
        // What does not load is found out anew, and is no error yet.
        kernel.on_gpu(gpu, key_of(config).as_ref(), Some(config.schedule())).ok()?;
        (report.origin, report.took) = (origin, start.elapsed());
        tell(|| kept, origin, report.took);
        Some((report, chosen))
    };
    let stored = || usable(cache::find_record(&of)?, Origin::Stored);
    if is_asked_again() {
        return Err(Unknown { _turn: cache::lock_record(&of), of: Box::new(of) });
    }
    if let Some(found) = tuner.committed.find(&of).and_then(|record| usable(record, Origin::Committed)).or_else(stored) {
        return Ok(found);
    }
    let turn = cache::lock_record(&of);
    // Whoever had the turn before has found it.
    stored().ok_or_else(|| Unknown { of: Box::new(of), _turn: turn })
}

impl Unknown {
    /// Keeps what was found out.
    pub(super) fn keep<C: Debug>(self, report: &Report<C>, chosen: usize) {
        let record = record(report, chosen, *self.of);
        cache::save_record(&record);
        tell(|| record, report.origin, report.took);
    }
}

/// What a record is of: these configurations of the kernel, on this GPU, for the values of a tuning key. What heuristics give is no part of it, as it is
/// no part of the key. Where results are compared, a record that nobody compared is another one.
fn record_key<C: TuneConfig>(kernel: &Kernel, gpu: &impl Gpu, configs: &[C], verifies: bool, values: &[u64]) -> RecordKey {
    let mut configs: String = configs.iter().map(|config| format!("{config:?}\n")).collect();
    if verifies {
        configs.push_str("verified");
    }
    let device = gpu.device();
    RecordKey {
        kernel: kernel.name().to_owned(),
        content: cache::hash(&[kernel.content(gpu).as_bytes(), configs.as_bytes()]),
        device: device.name().to_owned(),
        driver: if device.is_sim() { SIMULATOR } else { driver::version() }.to_owned(),
        values: values.to_vec(),
    }
}

/// What stands for a driver where there is none.
const SIMULATOR: &str = concat!("simulator ", env!("CARGO_PKG_VERSION"));

/// The report that a record tells of, and the place of what it chose; none if it does not fit the configurations.
fn report<C: TuneConfig>(record: Record, kernel: &'static str, device: Device, configs: &[C]) -> Option<(Report<C>, usize)> {
    let Record { attempts, chosen, .. } = record;
    // A record is from outside: whatever it says is chosen must be something that ran.
    if attempts.len() != configs.len() || attempts.get(chosen)?.timed.is_none() {
        return None;
    }
    let trial = |(place, (attempt, config)): (usize, (Attempt, &C))| {
        let outcome = match (attempt.failed, attempt.timed) {
            (_, Some((median_us, samples))) => Outcome::Measured { median_us, samples },
            (Some(reason), None) => Outcome::Failed(reason),
            (None, None) => Outcome::Pruned,
        };
        Trial { config: *config, outcome, chosen: place == chosen }
    };
    let trials = attempts.into_iter().zip(configs).enumerate().map(trial).collect();
    Some((Report { kernel, device, trials, origin: Origin::Stored, took: Duration::ZERO }, chosen))
}

fn record<C: Debug>(report: &Report<C>, chosen: usize, of: RecordKey) -> Record {
    let attempt = |trial: &Trial<C>| {
        let (timed, failed) = match &trial.outcome {
            Outcome::Measured { median_us, samples } => (Some((*median_us, *samples)), None),
            Outcome::Failed(reason) => (None, Some(reason.clone())),
            Outcome::Pruned | Outcome::Untimed => (None, None),
        };
        Attempt { config: format!("{:?}", trial.config), timed, failed }
    };
    Record { of, attempts: report.trials.iter().map(attempt).collect(), chosen }
}

// Without caches nobody asks.

#[cfg(not(feature = "cache"))]
fn is_asked_again() -> bool {
    false
}

#[cfg(not(feature = "cache"))]
fn tell(_: impl FnOnce() -> Record, _: Origin, _: Duration) {}

#[cfg(test)]
mod tests {
    use kernel_lang::Schedule;

    use super::*;

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

    fn of() -> RecordKey {
        let text = String::new;
        RecordKey { kernel: text(), content: text(), device: text(), driver: text(), values: Vec::new() }
    }

    fn tuned() -> Report<Config> {
        let outcomes = [
            Outcome::Failed("too much".to_owned()),
            Outcome::Measured { median_us: 3.5, samples: 9 },
            Outcome::Pruned,
            Outcome::Measured { median_us: 4.0, samples: 2 },
        ];
        let trials = outcomes.into_iter().zip(1..).map(|(outcome, i)| Trial { config: Config(i), outcome, chosen: i == 2 });
        Report { kernel: "k", device: Device::cpu(), trials: trials.collect(), origin: Origin::Timed, took: Duration::ZERO }
    }

    #[test]
    fn a_report_survives_as_a_record() {
        let first = tuned();
        let configs: Vec<Config> = first.trials.iter().map(|trial| trial.config).collect();
        let (again, chosen) = report(record(&first, 1, of()), "k", Device::cpu(), &configs).unwrap();
        assert_eq!((again.to_string(), chosen), (first.to_string(), 1));
        assert_eq!(again.chosen().unwrap().config, Config(2));
    }

    #[test]
    fn a_record_that_does_not_fit_is_none() {
        let configs = [1, 2, 3, 4].map(Config);
        let report = |chosen| report(record(&tuned(), chosen, of()), "k", Device::cpu(), &configs);
        assert!(report(3).is_some());
        assert!(report(0).is_none() && report(2).is_none(), "what is chosen did not run");
        assert!(report(4).is_none(), "what is chosen is not there");
        assert!(super::report(record(&tuned(), 1, of()), "k", Device::cpu(), &configs[..3]).is_none(), "there are other configurations");
    }

    #[cfg(all(feature = "cache", feature = "sim"))]
    #[test]
    fn a_record_is_of_the_code_and_not_of_its_places() {
        use crate::Target;
        use crate::device::Backend;
        use crate::kernel::Variant;
        use crate::sim::SimGpu;

        const fn variant(ptx: &'static str) -> Variant {
            Variant { key: &[1], schedule: Schedule::DEFAULT, target: "sm_80", entry: "k", shared_bytes: 0, ptx }
        }
        static VARIANTS: [[Variant; 1]; 3] = [
            [variant(".file 1 \"a.rs\"\n\t.loc 1 3 9\n\tadd.f32 %f0, %f1, %f2;\n")],
            [variant(".file 1 \"b.rs\"\n\n\t// moved\n\t.loc 1 4 9\n\tadd.f32 %f0, %f1, %f2;\n")],
            [variant(".file 1 \"a.rs\"\n\t.loc 1 3 9\n\tsub.f32 %f0, %f1, %f2;\n")],
        ];
        static KERNELS: [Kernel; 5] = [
            Kernel::new("k", "ir", Schedule::DEFAULT, &[], &VARIANTS[0]),
            Kernel::new("k", "other ir", Schedule::DEFAULT, &[], &VARIANTS[1]),
            Kernel::new("k", "ir", Schedule::DEFAULT, &[], &VARIANTS[2]),
            Kernel::new("k", "ir", Schedule::DEFAULT, &[], &[]),
            Kernel::new("k", "other ir", Schedule::DEFAULT, &[], &[]),
        ];
        let device = Device::sim(Target::SM_80).unwrap();
        let Backend::Sim(sim) = device.backend() else { panic!("{device} is simulated") };
        let of = |kernel, configs: &[Config]| record_key(kernel, &SimGpu { device, sim }, configs, false, &[5]);
        let [first, moved, other, compiled, edited] = KERNELS.each_ref().map(|kernel| of(kernel, &[Config(1)]));
        assert_eq!(first, moved);
        assert_eq!((first.device.as_str(), &first.values[..]), ("simulated A100 (sm_80)", &[5][..]));
        assert!(first.content != other.content && first.content != compiled.content && compiled.content != edited.content);
        assert_ne!(of(&KERNELS[0], &[Config(1), Config(2)]).content, first.content);
        assert_ne!(record_key(&KERNELS[0], &SimGpu { device, sim }, &[Config(1)], true, &[5]).content, first.content, "it was compared");
    }

    #[cfg(all(feature = "cache", feature = "sim"))]
    #[test]
    fn what_one_found_the_next_recalls_if_it_can_load_it() {
        use crate::Target;
        use crate::cache::Store;
        use crate::device::Backend;
        use crate::kernel::Variant;
        use crate::sim::SimGpu;

        const PTX: &str = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
        const fn variant(key: &'static [u64], ptx: &'static str) -> Variant {
            Variant { key, schedule: Schedule::DEFAULT, target: "sm_80", entry: "k", shared_bytes: 0, ptx }
        }
        static VARIANTS: [Variant; 2] = [variant(&[1], PTX), variant(&[2], "no PTX")];
        static KERNEL: Kernel = Kernel::new("k", "", Schedule::DEFAULT, &[], &VARIANTS);
        let device = Device::sim(Target::SM_80).unwrap();
        let Backend::Sim(sim) = device.backend() else { panic!("{device} is simulated") };
        const CONFIGS: [Config; 2] = [Config(1), Config(2)];
        let (configs, tuner) = (CONFIGS, Tuner::new(&CONFIGS, &[]));
        let recall = |values: &[u64]| recall(&KERNEL, &SimGpu { device, sim }, (&tuner, false), &configs, |config| [config.0], values);
        let found = |chosen: usize| {
            let outcome = Outcome::Measured { median_us: 3.5, samples: 9 };
            let trials = configs.iter().enumerate().map(|(i, &config)| Trial { config, outcome: outcome.clone(), chosen: i == chosen });
            Report { kernel: "k", device, trials: trials.collect(), origin: Origin::Timed, took: Duration::ZERO }
        };
        let directory = tempfile::tempdir().unwrap();
        cache::set(Some(Store::open(directory.path())));
        recall(&[5]).err().unwrap().keep(&found(0), 0);
        let recalled = recall(&[5]).ok().unwrap().0;
        assert_eq!((recalled.to_string(), recalled.origin), (found(0).to_string(), Origin::Stored));
        assert!(recall(&[6]).is_err(), "another key");
        recall(&[7]).err().unwrap().keep(&found(1), 1);
        assert!(recall(&[7]).is_err(), "what was chosen does not load");
        cache::set(None);
        assert!(recall(&[5]).is_err(), "there is no store");
    }
}
