//! Reports of tuning as records on disk, and back: what one process tuned, the next one knows.

use std::fmt::Debug;

use super::{Outcome, Report, Trial, TuneConfig};
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

/// What another process found for these values of a tuning key, if what it chose can be loaded here. `key_of` gives the kernel's key with the constants of
/// a configuration.
pub(super) fn recall<C: TuneConfig, K: AsRef<[u64]>>(
    kernel: &Kernel,
    gpu: impl Gpu,
    configs: &[C],
    key_of: impl Fn(C) -> K,
    values: &[u64],
) -> Result<Report<C>, Unknown> {
    let of = record_key(kernel, gpu, configs, &key_of, values);
    let find = || {
        let report = report(&cache::find_record(&of)?, kernel.name(), gpu.device(), configs)?;
        let config = report.chosen()?.config;
        // One that is not there any more, say, because the kernel runs elsewhere, is not worth an error.
        kernel.on_gpu(gpu, key_of(config).as_ref(), Some(config.schedule())).ok()?;
        Some(report)
    };
    if let Some(report) = find() {
        return Ok(report);
    }
    let turn = cache::lock_record(&of);
    // Whoever had the turn before has found it.
    match find() {
        Some(report) => Ok(report),
        None => Err(Unknown { of: Box::new(of), _turn: turn }),
    }
}

impl Unknown {
    /// Keeps what was found out, if anything was chosen.
    pub(super) fn keep<C: Debug>(self, report: &Report<C>) {
        if let Some(record) = record(report, *self.of) {
            cache::save_record(&record);
        }
    }
}

/// What a record is of: these configurations of the kernel, on this GPU, for the values of a tuning key.
fn record_key<C: TuneConfig, K: AsRef<[u64]>>(
    kernel: &Kernel,
    gpu: impl Gpu,
    configs: &[C],
    key_of: impl Fn(C) -> K,
    values: &[u64],
) -> RecordKey {
    let texts: Vec<String> = configs.iter().map(|config| format!("{config:?}\n")).collect();
    let mut content = Vec::new();
    for (config, text) in configs.iter().zip(&texts) {
        content.push(text.as_bytes());
        kernel.add_content(gpu, key_of(*config).as_ref(), config.schedule(), &mut content);
    }
    let device = gpu.device();
    RecordKey {
        kernel: kernel.name().to_owned(),
        content: cache::hash(&content),
        device: device.name().to_owned(),
        driver: if device.is_sim() { SIMULATOR } else { driver::version() }.to_owned(),
        values: values.to_vec(),
    }
}

/// What stands for a driver where there is none.
const SIMULATOR: &str = concat!("simulator ", env!("CARGO_PKG_VERSION"));

/// The report that a record tells of; none if it does not know these configurations.
fn report<C: TuneConfig>(record: &Record, kernel: &'static str, device: Device, configs: &[C]) -> Option<Report<C>> {
    let trial = |config: &C| {
        let text = format!("{config:?}");
        let place = record.attempts.iter().position(|attempt| attempt.config == text)?;
        let outcome = match &record.attempts[place] {
            Attempt { failed: Some(reason), .. } => Outcome::Failed(reason.clone()),
            Attempt { timed: Some((median_us, samples)), .. } => Outcome::Measured { median_us: *median_us, samples: *samples },
            Attempt { .. } => Outcome::Pruned,
        };
        Some(Trial { config: *config, outcome, chosen: place == record.chosen })
    };
    let trials = configs.iter().map(trial).collect::<Option<Vec<_>>>()?;
    // A record is from outside: whatever it says is chosen must be something that ran.
    let ran = |trial: &Trial<C>| trial.chosen && matches!(trial.outcome, Outcome::Measured { .. });
    trials.iter().any(ran).then_some(Report { kernel, device, trials })
}

/// The report as a record; none if nothing was chosen.
fn record<C: Debug>(report: &Report<C>, of: RecordKey) -> Option<Record> {
    let attempt = |trial: &Trial<C>| {
        let (timed, failed) = match &trial.outcome {
            Outcome::Measured { median_us, samples } => (Some((*median_us, *samples)), None),
            Outcome::Failed(reason) => (None, Some(reason.clone())),
            Outcome::Pruned | Outcome::Untimed => (None, None),
        };
        Attempt { config: format!("{:?}", trial.config), timed, failed }
    };
    let chosen = report.trials.iter().position(|trial| trial.chosen)?;
    Some(Record { of, attempts: report.trials.iter().map(attempt).collect(), chosen })
}

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
        Report { kernel: "k", device: Device::cpu(), trials: trials.collect() }
    }

    #[test]
    fn a_report_survives_as_a_record() {
        let first = tuned();
        let configs: Vec<Config> = first.trials.iter().map(|trial| trial.config).collect();
        let record = record(&first, of()).unwrap();
        let again = report(&record, "k", Device::cpu(), &configs).unwrap();
        assert_eq!(again.to_string(), first.to_string());
        assert_eq!(again.chosen().unwrap().config, Config(2));
    }

    #[test]
    fn a_record_that_does_not_fit_is_none() {
        let record = record(&tuned(), of()).unwrap();
        assert!(report(&record, "k", Device::cpu(), &[Config(1), Config(2), Config(5)]).is_none(), "an unknown configuration");
        assert!(report(&record, "k", Device::cpu(), &[Config(1), Config(3)]).is_none(), "the chosen one is gone");
        let failed = Record { chosen: 0, ..record };
        assert!(report(&failed, "k", Device::cpu(), &[Config(1), Config(2)]).is_none(), "the chosen one does not run");
        let nothing = Report { trials: Vec::new(), ..tuned() };
        assert!(super::record(&nothing, of()).is_none());
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
        let of = |kernel, configs: &[Config]| record_key(kernel, SimGpu { device, sim }, configs, |config| [config.0], &[5]);
        let [first, moved, other, compiled, edited] = KERNELS.each_ref().map(|kernel| of(kernel, &[Config(1)]));
        assert_eq!(first, moved);
        assert_eq!((first.device.as_str(), &first.values[..]), ("simulated A100 (sm_80)", &[5][..]));
        assert!(first.content != other.content && first.content != compiled.content && compiled.content != edited.content);
        assert_ne!(of(&KERNELS[0], &[Config(1), Config(2)]).content, first.content);
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
        let configs = [Config(1), Config(2)];
        let recall = |values: &[u64]| recall(&KERNEL, SimGpu { device, sim }, &configs, |config| [config.0], values);
        let found = |chosen: usize| {
            let outcome = Outcome::Measured { median_us: 3.5, samples: 9 };
            let trials = configs.iter().enumerate().map(|(i, &config)| Trial { config, outcome: outcome.clone(), chosen: i == chosen });
            Report { kernel: "k", device, trials: trials.collect() }
        };
        let directory = tempfile::tempdir().unwrap();
        cache::set(Some(Store::open(directory.path())));
        recall(&[5]).err().unwrap().keep(&found(0));
        assert_eq!(recall(&[5]).ok().unwrap().to_string(), found(0).to_string());
        assert!(recall(&[6]).is_err(), "another key");
        recall(&[7]).err().unwrap().keep(&found(1));
        assert!(recall(&[7]).is_err(), "what was chosen does not load");
        cache::set(None);
        assert!(recall(&[5]).is_err(), "there is no store");
    }
}
