//! Autotuning: the first launch of a key times every configuration, and later launches use the fastest one.
//!
//! A *key* consists of:
//!
//! - the device;
//! - the class of the number of programs ([`Programs`](crate::cache::Programs));
//! - the values that `key` selects from the arguments;
//! - the types and constants that the launch names;
//! - the set of tensors that are aligned to 16 bytes;
//! - the facts on which the kernel is specialised: a stride that becomes 1 is a new key, even with `key = []`;
//! - the set of configurations that `prune` leaves.
//!
//! A configuration that `prune` rejects for the launch's arguments never runs with these arguments. A configuration that does not compile,
//! load or launch while the key is tuned is recorded with its reason, and launches use the others. If a later launch of the chosen
//! configuration is refused, that launch runs the next best configuration, and the key keeps its winner. Every launch computes heuristics
//! anew, after its configuration is known.
//!
//! The result is stored on disk, where the next process finds it: see [`cache`](crate::cache). Records that a team commits, as in
//! `#[autotune(records = "tuned/h200.json")]`, take precedence over records on disk.
//!
//! While a key is tuned, the kernel runs many times on the launch's own arguments. Every run finds the arguments in their state before the
//! launch: tuning copies each tensor that the kernel both reads and writes, and restores it before each run. `restore_value` names more
//! tensors to restore, and `reset_to_zero` names tensors to fill with zeros. If there is no memory for the copies, the first configuration
//! runs untimed, and the next launch tries again.
//!
//! # Measurement
//!
//! | phase | duration | runs |
//! |---|---|---|
//! | first runs | one run each | every configuration: loads its code, shows whether it runs and, with `verify`, checks its results |
//! | warm-up | `warmup` ms, default 5 | rounds that are not counted, so that the clock frequency rises |
//! | rounds | `rep` ms, default 100 | each configuration once a round, in another order each time, after an L2 flush |
//! | final | at the end | the two best configurations alternate again; the faster in these runs wins |
//!
//! GPU events time each run. All runs after the first are replays of the launch, as in a [`Replay`](crate::Replay): launched from the
//! host, a kernel of a few microseconds takes another time. If one of them cannot be captured, all are launched from the host. The time of
//! a configuration is the mean of the middle half of its runs. It drops out if its best run is far above the leader's time, by 100% after
//! the first round, 25% after the second, 8% after the fifth, or if its own time is 4% above after the 16th. There are at most 100 rounds
//! for each 100 ms of `rep`. `warmup` and `rep` bound the whole tuning, not each configuration. If the environment variable
//! `GALATEA_PRINT_TUNING` is set, each tuning writes its trials to standard error.
//!
//! One thread tunes at a time in a process, so that measurements do not disturb each other. Another thread with the same key waits and uses
//! the result. Threads whose keys are known or on record do not wait. A launch of another tuned kernel inside a tuning, for example in a
//! hook, runs its first configuration unless its key is known.
//!
//! Two cases run without timing. On the CPU, a launch uses the first configuration that `prune` leaves and that can run. On every device, a
//! configuration without rivals is not timed. On a simulated GPU every configuration runs once, so that mistakes in all of them are found;
//! a fault is an error of the launch and is not recorded. The times there are estimates of the simulated clock.

mod choose;
mod committed;
#[cfg(feature = "cache")]
mod found;
mod key;
pub(crate) mod known_records;
mod launch;
mod memory;
mod packed;
mod progress;
mod race;
mod recall;
pub(crate) mod recorded;
mod refusals;
mod report;
mod rules;
#[cfg(feature = "cache")]
mod shapes;
mod untimed;
mod verify;
mod winner;

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel_lang::Schedule;

use crate::kernel::append_only_table::Grown;

use committed::Committed;
#[doc(hidden)]
pub use committed::RecordsFile;
#[cfg(feature = "cache")]
pub use found::Found;
#[doc(hidden)]
pub use key::KeyPart;
pub use launch::AutotunedLaunch;
#[doc(hidden)]
pub use report::debug_config;
pub use report::{Origin, Outcome, Report, Trial};
#[doc(hidden)]
pub use rules::{Extents, Rules, asked, extent};
#[cfg(feature = "cache")]
pub use shapes::{FromField, Row, Shapes, shapes};
#[doc(hidden)]
pub use verify::HostArgs;
use winner::Winner;

/// One configuration of an autotuned kernel: values of its tuned constants, and a schedule. `#[autotune]` implements it.
pub trait TuneConfig: Copy + Debug + Send + Sync + 'static {
    /// Writes the tuned constants to their positions in the kernel's key and leaves the other words unchanged.
    fn write_key(&self, key: &mut [u64]);

    /// The schedule: how the work is spread over threads and time.
    fn schedule(&self) -> Schedule;
}

/// The configurations of a kernel and the results so far. All launches share one static.
#[derive(Debug)]
pub struct Tuner<C: 'static> {
    configs: &'static [C],
    /// Which argument words are part of the tuning key.
    key: &'static [KeyPart],
    /// Numbers of the pointers whose memory is zeroed before each run, and of those whose memory is restored.
    zeroed: &'static [usize],
    restored: &'static [usize],
    warmup_ms: u32,
    rep_ms: u32,
    committed: Committed,
    winners: Grown<Winner<C>>,
    /// Serialises the search for records of other processes.
    looking: Mutex<()>,
}

impl<C: TuneConfig> Tuner<C> {
    /// A tuner over these configurations.
    #[doc(hidden)]
    pub const fn new(configs: &'static [C], key: &'static [KeyPart]) -> Tuner<C> {
        Tuner {
            configs,
            key,
            zeroed: &[],
            restored: &[],
            warmup_ms: 5,
            rep_ms: 100,
            committed: Committed::new(&[]),
            winners: Grown::new(),
            looking: Mutex::new(()),
        }
    }

    /// `reset_to_zero`, as numbers of pointers.
    #[doc(hidden)]
    #[must_use]
    pub const fn zeroing(mut self, pointers: &'static [usize]) -> Self {
        self.zeroed = pointers;
        self
    }

    /// `restore_value`, as numbers of pointers.
    #[doc(hidden)]
    #[must_use]
    pub const fn restoring(mut self, pointers: &'static [usize]) -> Self {
        self.restored = pointers;
        self
    }

    /// `warmup`, in milliseconds.
    #[doc(hidden)]
    #[must_use]
    pub const fn warmup(mut self, milliseconds: u32) -> Self {
        self.warmup_ms = milliseconds;
        self
    }

    /// `rep`, in milliseconds.
    #[doc(hidden)]
    #[must_use]
    pub const fn rep(mut self, milliseconds: u32) -> Self {
        self.rep_ms = milliseconds;
        self
    }

    /// `records`, as texts of files.
    #[doc(hidden)]
    #[must_use]
    pub const fn records(mut self, files: &'static [RecordsFile]) -> Self {
        self.committed.files = files;
        self
    }

    /// The configurations. Fields that heuristics fill are not set.
    pub fn configs(&self) -> &'static [C] {
        self.configs
    }

    /// The result of this process for a key.
    #[inline]
    fn find(&self, key: &[u64]) -> Option<&Winner<C>> {
        self.winners.find(None, key)
    }

    /// The result for a key: of this process or, through `look`, of another one. If several threads ask for the same key, only the first
    /// calls `look`.
    fn found(&self, key: &[u64], look: impl FnOnce() -> Option<(Report<C>, usize)>) -> Option<&Winner<C>> {
        let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        self.find(key).or_else(|| look().map(|(report, chosen)| self.remember(key, report, chosen)))
    }

    /// Stores the result for a key. `chosen` is the index of the configuration.
    fn remember(&self, key: &[u64], report: Report<C>, chosen: usize) -> &Winner<C> {
        self.winners.keep(None, key, Winner::new(report, chosen))
    }
}

/// If this variable is set, each tuning writes its report to standard error.
const PRINT_VARIABLE: &str = "GALATEA_PRINT_TUNING";

/// Returns whether tunings are to be printed.
fn is_printed() -> bool {
    std::env::var_os(PRINT_VARIABLE).is_some()
}

/// The lock of the one thread that tunes. None if this thread already holds it and asks again from inside a tuning.
fn alone() -> Option<Alone> {
    static TUNING: Mutex<()> = Mutex::new(());
    if IS_TUNING.replace(true) {
        return None;
    }
    Some(Alone(TUNING.lock().unwrap_or_else(PoisonError::into_inner)))
}

thread_local! {
    static IS_TUNING: Cell<bool> = const { Cell::new(false) };
}

struct Alone(#[expect(dead_code, reason = "it is held, not looked at")] MutexGuard<'static, ()>);

impl Drop for Alone {
    fn drop(&mut self) {
        IS_TUNING.set(false);
    }
}
