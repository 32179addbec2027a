//! Conversion between reports of tuning and stored records, so that a process can use the results of an earlier one.

use std::fmt::{Debug, Display};
use std::time::{Duration, Instant};

#[cfg(feature = "cache")]
use super::found::{is_asked_again, tell};
use super::verify::Verify;
use super::{KeyPart, Origin, Outcome, Report, Trial, TuneConfig, Tuner};
use crate::cache::{self, Attempt, Programs, Record, RecordKey};
use crate::kernel::Kernel;
use crate::kernel::gpu::Gpu;
use crate::launch::fact::Fact;
use crate::{Device, Result, device::driver};

/// A search for a record with these values of a tuning key.
pub(super) struct Search<'a, C: 'static, P, L> {
    kernel: &'a Kernel,
    gpu: &'a P,
    tuner: &'a Tuner<C>,
    /// The configurations after heuristics.
    completed: &'a [C],
    load: L,
    of: Box<RecordKey>,
}

/// A key without a record. Other processes that want to tune it wait while this value lives.
#[must_use = "what is found out should be kept"]
pub(super) struct Unknown {
    of: Box<RecordKey>,
    _turn: Option<cache::Lock>,
}

impl<'a, C: TuneConfig, P: Gpu, L: Fn(C) -> Result<()>> Search<'a, C, P, L> {
    /// `completed` has the configurations after heuristics; `key_of` returns the kernel's key with the constants of one of them, and `load` loads the code that a launch of one
    /// runs.
    pub(super) fn new<K: AsRef<[u64]>>(
        kernel: &'a Kernel,
        gpu: &'a P,
        (tuner, verify): (&'a Tuner<C>, Option<Verify>),
        completed: &'a [C],
        key_of: impl Fn(C) -> K,
        load: L,
        values: (Programs, &[u64]),
    ) -> Self {
        let is_built = is_built(kernel, gpu, completed, &key_of);
        let of = Box::new(record_key(kernel, gpu, (tuner, verify), is_built, values));
        Search { kernel, gpu, tuner, completed, load, of }
    }

    /// The known report and the index of the chosen configuration, if that configuration can be loaded here. Does not wait for other
    /// processes.
    ///
    /// Committed records take precedence over records on disk, so that all machines do what was committed, whatever they tuned before.
    pub(super) fn known(&self) -> Option<(Report<C>, usize)> {
        if is_asked_again() {
            return None;
        }
        let start = Instant::now();
        let committed = self.tuner.committed.find(&self.of).and_then(|record| self.usable(record, Origin::Committed, start));
        committed.or_else(|| self.stored(start))
    }

    /// Takes the lock of this key among all processes. Returns the record that the previous holder wrote, if there is one; otherwise the
    /// caller holds the lock and tunes.
    pub(super) fn take_turn(self) -> Result<(Report<C>, usize), Unknown> {
        let start = Instant::now();
        let turn = cache::lock_record(&self.of);
        let found = if is_asked_again() { None } else { self.stored(start) };
        found.ok_or(Unknown { of: self.of, _turn: turn })
    }

    fn stored(&self, start: Instant) -> Option<(Report<C>, usize)> {
        let record = cache::find_record(&self.of).or_else(|| of_process::find(&self.of));
        self.usable(record?, Origin::Stored, start)
    }

    fn usable(&self, record: Record, origin: Origin, start: Instant) -> Option<(Report<C>, usize)> {
        let kept = record.clone();
        let (mut report, chosen) = report(record, self.kernel.name(), self.gpu.device(), self.completed)?;
        let config = self.completed[chosen];
        // A configuration that does not load is no error here: the key is tuned again.
        (self.load)(config).ok()?;
        (report.origin, report.took) = (origin, start.elapsed());
        tell(|| kept, origin, report.took);
        Some((report, chosen))
    }
}

impl Unknown {
    /// Stores the result.
    pub(super) fn keep<C: Debug>(self, report: &Report<C>, chosen: usize) {
        let record = record(report, chosen, *self.of);
        cache::save_record(&record);
        of_process::keep(&record);
        tell(|| record, report.origin, report.took);
    }
}

/// The records that this process made. A kernel of the program and the same kernel in a package have a tuner each, and use one record, also without a
/// store.
#[cfg(feature = "cache")]
pub(super) mod of_process {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use crate::cache::{Record, RecordKey};

    fn records() -> MutexGuard<'static, Vec<Record>> {
        static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());
        RECORDS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them.
    pub(in crate::tune) fn all() -> Vec<Record> {
        records().clone()
    }

    pub(super) fn find(of: &RecordKey) -> Option<Record> {
        records().iter().find(|record| record.of == *of).cloned()
    }

    pub(super) fn keep(record: &Record) {
        let mut records = records();
        records.retain(|known| known.of != record.of);
        records.push(record.clone());
    }
}

/// Without caches, keys of records have no hash of the kernel.
#[cfg(not(feature = "cache"))]
pub(super) mod of_process {
    use crate::cache::{Record, RecordKey};

    pub(in crate::tune) fn all() -> Vec<Record> {
        Vec::new()
    }

    pub(super) fn find(_: &RecordKey) -> Option<Record> {
        None
    }

    pub(super) fn keep(_: &Record) {}
}

/// The key of a record: the kernel's configurations, the GPU, the values of the tuning key, and the arguments that these values describe.
/// Results of heuristics are not part of it, as they are not part of the tuning key. With `verify`, the kind of comparison is part of it,
/// so that an unverified or differently verified record does not match. Unless every configuration was built with the program, the kernel's
/// source is part of it too.
fn record_key<C: TuneConfig>(
    kernel: &Kernel,
    gpu: &impl Gpu,
    (tuner, verify): (&Tuner<C>, Option<Verify>),
    is_built: bool,
    (programs, values): (Programs, &[u64]),
) -> RecordKey {
    let configs = tuner.configs().iter().map(|config| format!("{config:?}"));
    let mut text = description(configs, tuner.key, kernel.facts(), verify);
    text.extend((!is_built).then(|| kernel.source()));
    let device = gpu.device();
    RecordKey {
        kernel: kernel.name().to_owned(),
        content: cache::hash(&[kernel.content(gpu).as_bytes(), text.as_bytes()]),
        device: device.name().to_owned(),
        driver: if device.is_sim() { SIMULATOR } else { driver::version() }.to_owned(),
        programs: Some(programs),
        values: values.to_vec(),
    }
}

/// The part of a record's content that describes the configurations and the tuning key.
pub(super) fn description(configs: impl Iterator<Item = impl Display>, key: &[KeyPart], facts: &[Fact], verify: Option<Verify>) -> String {
    let mut text: String = configs.map(|config| format!("{config}\n")).collect();
    // Values have no meaning without the arguments that they describe.
    text += &format!("key {key:?}\nfacts {facts:?}\n");
    text.extend(verify.map(Verify::description));
    text
}

/// Returns whether every configuration was built with the program, for these types, constants and facts.
fn is_built<C: TuneConfig, K: AsRef<[u64]>>(kernel: &Kernel, gpu: &impl Gpu, completed: &[C], key_of: &impl Fn(C) -> K) -> bool {
    completed.iter().all(|&config| kernel.is_built(gpu, key_of(config).as_ref(), config.schedule()))
}

/// The driver's name on a simulated GPU.
const SIMULATOR: &str = concat!("simulator ", env!("CARGO_PKG_VERSION"));

/// The report of a record, and the index of the chosen configuration; none if the record does not fit the configurations.
fn report<C: TuneConfig>(record: Record, kernel: &'static str, device: Device, configs: &[C]) -> Option<(Report<C>, usize)> {
    let Record { attempts, chosen, .. } = record;
    // A record is untrusted input: the chosen configuration must be one that was timed.
    if attempts.len() != configs.len() || attempts.get(chosen)?.timed.is_none() {
        return None;
    }
    let trial = |(index, (attempt, config)): (usize, (Attempt, &C))| {
        let outcome = match (attempt.failed, attempt.timed) {
            (_, Some((median_us, samples))) => Outcome::Measured { median_us, samples },
            (Some(reason), None) => Outcome::Failed(reason),
            (None, None) => Outcome::Pruned,
        };
        Trial { config: *config, outcome, chosen: index == chosen }
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

// Without caches there are no records and no reports.

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

    /// A kernel that is never launched.
    #[cfg(all(feature = "cache", feature = "sim"))]
    const fn kernel(name: &'static str, ir: &'static str, variants: &'static [crate::kernel::Variant]) -> Kernel {
        // SAFETY: the kernel is never launched.
        unsafe { Kernel::new(name, ir, Schedule::DEFAULT, &[], variants) }
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

    fn of() -> RecordKey {
        let text = String::new;
        RecordKey { kernel: text(), content: text(), device: text(), driver: text(), programs: None, values: Vec::new() }
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
    fn a_record_does_not_depend_on_source_locations() {
        use crate::Target;
        use crate::device::Backend;
        use crate::kernel::Variant;
        use crate::launch::fact::Fact;
        use crate::sim::SimGpu;
        use crate::tune::KeyPart;
        use crate::tune::verify::HostArgs;

        const fn variant(ptx: &'static str) -> Variant {
            Variant { key: &[1], schedule: Schedule::DEFAULT, target: "sm_80", entry: "k", shared_bytes: 0, ptx }
        }
        static VARIANTS: [[Variant; 1]; 3] = [
            [variant(".file 1 \"a.rs\"\n\t.loc 1 3 9\n\tadd.f32 %f0, %f1, %f2;\n")],
            [variant(".file 1 \"b.rs\"\n\n\t// moved\n\t.loc 1 4 9\n\tadd.f32 %f0, %f1, %f2;\n")],
            [variant(".file 1 \"a.rs\"\n\t.loc 1 3 9\n\tsub.f32 %f0, %f1, %f2;\n")],
        ];
        static KERNELS: [Kernel; 6] = [
            kernel("k", "ir", &VARIANTS[0]),
            kernel("k", "other ir", &VARIANTS[1]),
            kernel("k", "ir", &VARIANTS[2]),
            kernel("k", "ir", &[]),
            kernel("k", "other ir", &[]),
            kernel("k", "ir @3:9", &[]),
        ];
        let device = Device::sim(Target::SM_80).unwrap();
        let Backend::Sim(sim) = device.backend() else { panic!("{device} is simulated") };
        let gpu = SimGpu { device, sim };
        let of = |kernel, configs| {
            let is_built = is_built(kernel, &gpu, configs, &|config: Config| [config.0]);
            record_key(kernel, &gpu, (&Tuner::new(configs, &[]), None), is_built, (Programs::FewWaves, &[5]))
        };
        let [first, moved, other, compiled, edited, _] = KERNELS.each_ref().map(|kernel| of(kernel, &[Config(1)]));
        assert_eq!(first, moved);
        assert_eq!((first.device.as_str(), &first.values[..]), ("simulated A100 (sm_80)", &[5][..]));
        assert!(first.content != other.content && first.content != compiled.content && compiled.content != edited.content);
        assert_ne!(of(&KERNELS[0], &[Config(1), Config(2)]).content, first.content);

        // If a configuration is compiled in process, the key includes the source, but not its spans.
        assert_ne!(of(&KERNELS[0], &[Config(1), Config(2)]).content, of(&KERNELS[1], &[Config(1), Config(2)]).content);
        assert_eq!(compiled.content, of(&KERNELS[5], &[Config(1)]).content);

        // Different comparisons have different keys: results that pass one may fail another.
        let by = |path, rtol| Some(Verify { by: Some((path, |_: &mut HostArgs| {})), rtol });
        let cpu = |rtol| Some(Verify { by: None, rtol });
        let checks = [None, cpu(None), cpu(Some(0.5)), cpu(Some(1e-4)), by("reference", None), by("other", None), by("other", Some(0.5))];
        let verified =
            |verify| record_key(&KERNELS[0], &gpu, (&Tuner::new(&[Config(1)], &[]), verify), true, (Programs::FewWaves, &[5])).content;
        let mut contents = checks.map(verified);
        assert_eq!((&contents[0], &contents), (&first.content, &checks.map(verified)));
        contents.sort();
        assert!(contents.windows(2).all(|two| two[0] != two[1]));

        // The value 5 has another meaning for another argument and in a bucket.
        const KEYS: [&[KeyPart]; 5] =
            [&[], &[KeyPart::exact(1)], &[KeyPart::exact(2)], &[KeyPart::power_of_two(1)], &[KeyPart::multiple(1, 5)]];
        let keyed = |key| record_key(&KERNELS[0], &gpu, (&Tuner::new(&[Config(1)], key), None), true, (Programs::FewWaves, &[5])).content;
        let mut contents = KEYS.map(keyed);
        assert_eq!(contents[0], first.content);
        contents.sort();
        assert!(contents.windows(2).all(|two| two[0] != two[1]));
        static FACTS: [[Fact; 1]; 2] = [[Fact::is("n", 1, 1)], [Fact::multiple_of("n", 1, 16)]];
        static SPECIALIZED: [Kernel; 2] =
            [kernel("k", "ir", &VARIANTS[0]).specializing(&FACTS[0]), kernel("k", "ir", &VARIANTS[0]).specializing(&FACTS[1])];
        let [is_one, is_multiple] = SPECIALIZED.each_ref().map(|kernel| of(kernel, &[Config(1)]).content);
        assert!(is_one != is_multiple && is_one != first.content);
    }

    #[cfg(all(feature = "cache", feature = "sim"))]
    #[test]
    fn a_recorded_winner_is_recalled_if_its_code_loads() {
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
        static KERNEL: Kernel = kernel("k", "", &VARIANTS);
        let device = Device::sim(Target::SM_80).unwrap();
        let Backend::Sim(sim) = device.backend() else { panic!("{device} is simulated") };
        const CONFIGS: [Config; 2] = [Config(1), Config(2)];
        let (configs, tuner) = (CONFIGS, Tuner::new(&CONFIGS, &[]));
        let gpu = SimGpu { device, sim };
        let search = |values: &[u64]| {
            let load = |config: Config| KERNEL.on_gpu(&gpu, &[config.0], None).map(drop);
            Search::new(&KERNEL, &gpu, (&tuner, None), &configs, |config: Config| [config.0], load, (Programs::FewWaves, values))
        };
        let recall = |values: &[u64]| search(values).known().map_or_else(|| search(values).take_turn(), Ok);
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
        assert!(recall(&[5]).is_ok(), "without a store, the process remembers what it tuned");
    }
}
