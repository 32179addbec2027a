//! The disk cache: no process compiles or tunes again what another one has done. Requires the feature `cache`, which is on by default.
//!
//! The cache has three kinds of entries:
//!
//! - **Machine code** that an assembler made from PTX, if the environment variable `GALATEA_PTXAS` names a `ptxas`. Otherwise the driver
//!   compiles PTX, which takes milliseconds, and caches the result itself (`~/.nv/ComputeCache`, or `CUDA_CACHE_PATH`).
//! - **PTX** of variants that were not compiled with the program but in process.
//! - **Tuning records**: the configurations tried for a key of an `#[autotune]` kernel, and the fastest one.
//!
//! The key of an entry contains everything that the entry depends on: the source text, the compiler and its version, the architecture, the
//! driver. So no entry is ever out of date. Above the size limit, 1 GiB by default, the least recently used entries are evicted, tuning
//! records last. A file that is corrupt, truncated or larger than any valid entry is ignored and removed. If the store cannot be written,
//! everything works without it. A store that another user can write is refused, because code in it would run unchecked; a warning gives the
//! reason and the remedy.
//!
//! # Location
//!
//! The store is the folder `galatea` in the user's cache directory (`$XDG_CACHE_HOME` or `~/.cache`; `%LOCALAPPDATA%` on Windows), created
//! for its owner alone. The environment variable `GALATEA_CACHE` names another directory, or turns the cache off: `GALATEA_CACHE=off`. A
//! program selects a store with `cache::set`. Nothing leaves the machine. The store contains names of kernels, devices and drivers, values
//! of tuning keys, PTX and machine code. It contains no tensor data; of the sources it contains only the file names and line numbers in the
//! PTX. The command `galatea cache` lists, shows, clears, exports and imports entries.

#[cfg(not(feature = "cache"))]
mod absent;
#[cfg(feature = "cache")]
mod code;
#[cfg(feature = "cache")]
mod contents;
#[cfg(feature = "cache")]
mod entry;
#[cfg(feature = "cache")]
mod process;
mod record;
#[cfg(feature = "cache")]
mod records;
#[cfg(feature = "cache")]
mod store;
#[cfg(all(feature = "cache", feature = "jit"))]
mod variant;

#[cfg(all(feature = "jit", not(feature = "cache")))]
pub(crate) use absent::compile;
#[cfg(not(feature = "cache"))]
pub(crate) use absent::{Lock, all_records, find_record, hash, lock_record, save_record};
#[cfg(feature = "cache")]
pub(crate) use code::load as load_code;
#[cfg(feature = "cache")]
pub use contents::Entry;
#[cfg(feature = "cache")]
pub(crate) use entry::hash;
#[cfg(feature = "cache")]
pub use entry::{Key, Kind};
#[cfg(feature = "cache")]
pub use process::{current, default_directory, set};
pub use record::{Attempt, Programs, Record, RecordKey};
pub(crate) use record::{FORMAT as RECORDS_FORMAT, FORMAT_WITHOUT_PROGRAMS as RECORDS_FORMAT_WITHOUT_PROGRAMS};
#[cfg(feature = "cache")]
pub use records::{Records, RecordsError, Updated};
#[cfg(feature = "cache")]
pub(crate) use records::{all as all_records, find as find_record, lock as lock_record, save as save_record};
#[cfg(feature = "cache")]
pub use store::{Lock, Store};
#[cfg(all(feature = "cache", feature = "jit"))]
pub(crate) use variant::compile;
