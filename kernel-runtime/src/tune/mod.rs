//! Autotuning: the first launch of a key times every configuration, later ones use the fastest.
//!
//! What was chosen is kept on disk, see [`cache`](crate::cache), where the next process finds it.
//!
//! A *key* is the device, the key arguments' values, the types, and which configurations `prune` leaves. While a key is tuned the kernel runs many times on the
//! launch's own arguments, so what it leaves in memory is right if it does not read what it writes (a kernel that adds
//! to its output adds many times). A configuration that `prune` names for the launch's arguments never runs with them. One that does not compile, load or launch is a record with its reason.
//! On the CPU the first configuration that is left runs, on a simulated GPU the first that compiles for it, untimed; so does one that has no rivals.

mod launch;
mod race;
mod recall;
mod report;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};

use kernel_lang::Schedule;

pub use launch::AutotunedLaunch;
#[doc(hidden)]
pub use report::debug_config;
pub use report::{Outcome, Report, Trial};

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
    key_words: &'static [usize],
    tuned: Tuned<C>,
}

type Tuned<C> = LazyLock<RwLock<HashMap<Box<[u64]>, Arc<Report<C>>>>>;

/// Which configurations of a tuner a launch may use, a bit for each; those beyond the 128th always.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept(u128);

impl Kept {
    /// All of them.
    pub const ALL: Kept = Kept(u128::MAX);
    /// How many can be pruned.
    pub const MOST: usize = 128;

    pub(crate) fn has(self, index: usize) -> bool {
        index >= Kept::MOST || self.0 >> index & 1 == 1
    }

    fn words(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }
}

impl<C: TuneConfig> Tuner<C> {
    /// The configurations that `prune` leaves.
    #[doc(hidden)]
    #[inline]
    pub fn kept(&self, prune: impl Fn(C) -> bool) -> Kept {
        let kept = self.configs.iter().take(Kept::MOST).enumerate().filter(|(_, config)| !prune(**config));
        Kept(kept.fold(0, |bits, (index, _)| bits | 1 << index))
    }

    /// A tuner over these configurations, whose key has these argument words (a pointer takes two words, a scalar one).
    pub const fn new(configs: &'static [C], key_words: &'static [usize]) -> Tuner<C> {
        Tuner { configs, key_words, tuned: LazyLock::new(RwLock::default) }
    }

    /// The configurations.
    pub fn configs(&self) -> &'static [C] {
        self.configs
    }

    fn find(&self, key: &[u64]) -> Option<Arc<Report<C>>> {
        self.tuned.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn remember(&self, key: &[u64], report: Report<C>) -> Arc<Report<C>> {
        let report = Arc::new(report);
        self.tuned.write().unwrap_or_else(PoisonError::into_inner).insert(key.into(), report.clone());
        report
    }
}

/// Measurements must not disturb each other, so one key is tuned at a time in a process.
fn alone() -> MutexGuard<'static, ()> {
    static TUNING: Mutex<()> = Mutex::new(());
    TUNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives `look` the key of a launch as one slice, on the stack where it is of a usual size.
fn with_key<R>(parts: &[&[u64]], look: impl FnOnce(&[u64]) -> R) -> R {
    let mut room = [0; 48];
    let len = parts.iter().map(|part| part.len()).sum();
    let Some(key) = room.get_mut(..len) else { return look(&parts.concat()) };
    let mut rest = &mut key[..];
    for part in parts {
        let (place, after) = std::mem::take(&mut rest).split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = after;
    }
    look(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_parts_in_order_however_long() {
        with_key(&[&[1], &[2, 3], &[]], |key| assert_eq!(key, [1, 2, 3]));
        let long = [7; 100];
        with_key(&[&[1], &long], |key| assert_eq!((key.len(), key[0], key[100]), (101, 1, 7)));
    }
}
