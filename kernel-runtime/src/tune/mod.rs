//! Autotuning: the first launch of a key times every configuration, later ones use the fastest.
//!
//! A *key* is the device, the class of the number of programs ([`Programs`](crate::cache::Programs)), what `key` says of the arguments, the types and constants that the launch names, which tensors are aligned to 16 bytes,
//! which facts hold that the kernel is specialised on (a stride that becomes 1 is a new key, `key = []` or not), and which configurations `prune` leaves. One that `prune` names for the launch's arguments never runs with them; one that does not compile, load or
//! launch while the key is tuned is a record with its reason, and launches use the others. Where the chosen one is refused by a later launch, that launch
//! runs the next best, and the key keeps its winner. Heuristics are computed by every launch, behind its configuration. What was chosen
//! is kept on disk, where the next process finds it: see [`cache`](crate::cache). What a team commits is looked at before:
//! `#[autotune(records = "tuned/h200.json")]`.
//!
//! While a key is tuned the kernel runs many times on the launch's own arguments. Each run finds them as the launch did: what the kernel both
//! reads and writes is copied first, and copied back (`restore_value` names more, `reset_to_zero` what is zeros). Where there is no memory
//! for the copies, the first configuration runs, untimed, and the next launch tries again.
//!
//! # How it is measured
//!
//! | | |
//! |---|---|
//! | once each | every configuration runs: that loads its code, and shows who runs at all, and with `verify` who computes what is right |
//! | for `warmup` ms, 5 if not given | rounds that are not counted, so that clocks rise |
//! | for `rep` ms, 100 if not given | rounds: each configuration once, in another order each time, the L2 cache emptied before, timed by events of the GPU. Who is far behind the leader's median leaves: twice as slow after the first round, 8% behind after the fifth. At most 25 rounds for each 100 ms |
//! | at the end | the two best take turns again, and the better median of these runs is chosen |
//!
//! The times are of the whole tuning, not of each configuration. The environment variable `GALATEA_PRINT_TUNING`, if it is set, has what was tried
//! written to standard error.
//!
//! One thread tunes at a time in a process, so that measurements do not disturb each other. Another thread with the same key waits, and uses what
//! was found; threads whose keys are known, or on record, do not wait. A launch of another tuned kernel from inside a tuning, as in a hook, runs its first
//! configuration, unless its key is known.
//!
//! On the CPU the first configuration that is left, and can run, does so untimed; so does one that has no rivals. On a simulated GPU every configuration
//! runs once, so that mistakes of all are found (a fault is an error of the launch, no record), and times are what its clock estimates.

mod choose;
mod committed;
#[cfg(feature = "cache")]
mod found;
mod key;
mod launch;
mod memory;
mod progress;
mod race;
mod recall;
mod refusals;
mod report;
mod rules;
#[cfg(feature = "cache")]
mod shapes;
mod verify;
mod winner;

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel_lang::Schedule;

use crate::grown::Grown;

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
    /// Writes the tuned constants to their places in the kernel's key; the others stay.
    fn write_key(&self, key: &mut [u64]);

    /// How the work is spread over threads and time.
    fn schedule(&self) -> Schedule;
}

/// The configurations of a kernel, and what was chosen so far: a static that every launch shares.
#[derive(Debug)]
pub struct Tuner<C: 'static> {
    configs: &'static [C],
    /// Which argument words are part of the tuning key.
    key: &'static [KeyPart],
    /// Pointers, by their number, that are set to zero before each run, and those that are given their values back.
    zeroed: &'static [usize],
    restored: &'static [usize],
    warmup_ms: u32,
    rep_ms: u32,
    committed: Committed,
    winners: Grown<Winner<C>>,
    /// Held while somebody looks for what other processes found.
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

    /// The configurations; what heuristics give is still open in them.
    pub fn configs(&self) -> &'static [C] {
        self.configs
    }

    /// What was chosen for a key in this process.
    #[inline]
    fn find(&self, key: &[u64]) -> Option<&Winner<C>> {
        self.winners.find(None, key)
    }

    /// What was chosen for a key, in this process or, as `look` says, in another. Of threads that ask for one, the first looks.
    fn found(&self, key: &[u64], look: impl FnOnce() -> Option<(Report<C>, usize)>) -> Option<&Winner<C>> {
        let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        self.find(key).or_else(|| look().map(|(report, chosen)| self.remember(key, report, chosen)))
    }

    /// Keeps what was chosen for a key: the configuration at that place.
    fn remember(&self, key: &[u64], report: Report<C>, chosen: usize) -> &Winner<C> {
        self.winners.keep(None, key, Winner::new(report, chosen))
    }
}

/// If it is set, each tuning writes its report to standard error.
const PRINT_VARIABLE: &str = "GALATEA_PRINT_TUNING";

/// Does the user want to hear of tuning?
fn is_printed() -> bool {
    std::env::var_os(PRINT_VARIABLE).is_some()
}

/// Held by the one thread that tunes. None if this thread does already, and asks from inside.
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
