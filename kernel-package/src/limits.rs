//! Limits of untrusted packages: the memory and the time that they may take.

use std::time::{Duration, Instant};

use crate::error::RunError;

/// The most that a package of a stranger may take.
///
/// ```
/// use std::time::Duration;
/// use kernel_package::Limits;
///
/// let limits = Limits::new().memory(64 << 20).time(Duration::from_secs(2));
/// assert_eq!((limits.most_memory(), limits.most_time()), (64 << 20, Duration::from_secs(2)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    memory: u64,
    time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::new()
    }
}

impl Limits {
    /// 1 GiB of memory, and a minute for loading and for each run.
    pub const fn new() -> Limits {
        Limits { memory: 1 << 30, time: Duration::from_secs(60) }
    }

    /// The most bytes that the package, its session and one run take together. Inputs are not counted: they belong to the caller.
    #[must_use]
    pub const fn memory(self, bytes: u64) -> Limits {
        Limits { memory: bytes, ..self }
    }

    /// The most time for loading the package, and for each run on the CPU.
    #[must_use]
    pub const fn time(self, time: Duration) -> Limits {
        Limits { time, ..self }
    }

    /// The most bytes.
    pub const fn most_memory(&self) -> u64 {
        self.memory
    }

    /// The most time.
    pub const fn most_time(&self) -> Duration {
        self.time
    }

    /// Compares a need with the limit, before the memory is allocated.
    pub(crate) fn allow(&self, needed: u64) -> Result<(), RunError> {
        if needed <= self.memory { Ok(()) } else { Err(RunError::MemoryLimit { needed, limit: self.memory }) }
    }

    /// The end of the time that begins now.
    pub(crate) fn end(&self) -> Instant {
        let now = Instant::now();
        // A limit that no clock reaches is none.
        now.checked_add(self.time).unwrap_or_else(|| now + Duration::from_secs(1 << 30))
    }
}

/// What values of JSON and a parsed kernel take at most, in bytes for each byte of their text.
pub(crate) const BYTES_PER_TEXT: u64 = 64;

/// The limits of a session, and the memory that it holds between runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) limits: Limits,
    pub(crate) held: u64,
}
