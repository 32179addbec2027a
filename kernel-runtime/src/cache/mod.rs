//! What is kept on disk, so that no process compiles or tunes what another has: with the feature `cache`, which is on by default.
//!
//! - **Machine code** that an assembler makes of PTX, where the environment variable `GALATEA_PTXAS` names a `ptxas`. Otherwise the driver compiles PTX, which
//!   takes milliseconds, and keeps what it made in a cache of its own (`~/.nv/ComputeCache`, or `CUDA_CACHE_PATH`).
//! - **PTX** of variants that were not compiled with the program, and are compiled in process.
//! - **Records of tuning**: what was tried for a key of an `#[autotune]` kernel, and which configuration was fastest.
//!
//! An entry is found by everything that it depends on: the text that was compiled, the compiler and its version, the architecture, the driver. So
//! nothing in a store is ever out of date; it is only not asked for any more, and goes when the store has grown to its limit, 1 GiB
//! by default, what was not used for longest first. A file that is broken, cut short or larger than an entry can be is as good as none, and is removed.
//! A store that cannot be written is none: everything works without. So is one that somebody else can write: code in it would run unchecked. A warning
//! says why it is refused, and what to do.
//!
//! # Where
//!
//! In the folder `galatea` of the user's cache directory (`$XDG_CACHE_HOME` or `~/.cache`; `%LOCALAPPDATA%` on Windows), made for its owner alone.
//! The environment variable `GALATEA_CACHE` names another directory, or switches all of it off: `GALATEA_CACHE=off`. A program chooses with
//! `cache::set`. Nothing leaves the machine. What lies there: names of kernels, devices and drivers, values of tuning keys, PTX and machine code; no
//! data of tensors, and of sources the file names and line numbers that PTX holds. The command `galatea cache` lists, shows, clears, exports and
//! imports.

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
pub(crate) use absent::{Lock, find_record, hash, lock_record, save_record};
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
pub(crate) use records::{find as find_record, lock as lock_record, save as save_record};
#[cfg(feature = "cache")]
pub use store::{Lock, Store};
#[cfg(all(feature = "cache", feature = "jit"))]
pub(crate) use variant::compile;
