//! The build cache of variants: files in this crate's folder in the target directory, so that `cargo clean` removes them too.
//!
//! A hash of the key names an entry. The entry begins with a checksum of key and value, so truncated, empty and foreign entries are
//! ignored. Files are written under a temporary name and renamed, so that concurrent builds see complete files. Files are not synced,
//! because entries lost in a power failure are compiled again. The cache cannot fail a build: after any error of the disk, variants are
//! compiled as without a cache.
//!
//! An entry is code that the program will run unchecked. So this user or root must own the folder and the files, and nobody else may be
//! able to write them ([`trusted_files`]). Refused entries are reported once and not used. The folders above the cache are not checked: they
//! also hold the procedural macros that rustc loads, so a user who can write them can already run code in the build.

mod entry;
#[cfg(test)]
mod refusals;
mod warning;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use kernel_frontend::Store;

/// The entries in a folder.
pub(crate) struct Files {
    folder: PathBuf,
    most_bytes: u64,
}

/// The limit on the total size of the entries, about ten thousand variants. Above it, the least recently used entries are evicted.
const MOST_BYTES: u64 = 256 << 20;
/// The limit on the size of one entry. A variant takes about 10 KiB, and an entry has one variant for each target.
const MOST_ENTRY_BYTES: u64 = 64 << 20;
/// The folder of this version of the file format. Another version of this crate in the same target directory uses another folder.
const FOLDER: &str = "variants-v2";

impl Files {
    /// The store of the build that runs this compiler. With `GALATEA_BUILD_CACHE=off` nothing is stored.
    pub(crate) fn of_this_target() -> Files {
        let is_off = std::env::var_os("GALATEA_BUILD_CACHE").is_some_and(|value| value == "off");
        let folder = if is_off { PathBuf::new() } else { Path::new(env!("OUT_DIR")).join(FOLDER) };
        Files { folder, most_bytes: MOST_BYTES }
    }

    fn is_off(&self) -> bool {
        self.folder.as_os_str().is_empty()
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(entry::name(key))
    }

    /// Checks that nobody else can write the folder, if it exists.
    fn check(&self) -> io::Result<()> {
        trusted_files::check_folder(&self.folder)
    }

    fn write(&self, key: &str, value: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let entry = entry::seal(key, value);
        if entry.len() as u64 > MOST_ENTRY_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        trusted_files::create_folder(&self.folder)?;
        self.check()?;
        let aside = self.folder.join(format!("{}-{}.new", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        // A file with this name was left by a process that was killed.
        let _ = fs::remove_file(&aside);
        let done = trusted_files::options().write(true).create_new(true).open(&aside).and_then(|mut file| {
            file.write_all(&entry)?;
            fs::rename(&aside, self.path(key))
        });
        if done.is_err() {
            let _ = fs::remove_file(&aside);
        }
        done
    }

    /// Evicts the least recently used entries until three quarters of the limit are in use.
    fn bound(&self) -> io::Result<()> {
        self.check()?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let about = entry.metadata()?;
            entries.push((about.modified()?, about.len(), entry.path()));
        }
        let mut bytes: u64 = entries.iter().map(|(_, len, _)| len).sum();
        if bytes <= self.most_bytes {
            return Ok(());
        }
        entries.sort();
        for (_, len, path) in entries {
            if bytes <= self.most_bytes / 4 * 3 {
                break;
            }
            // Another build may have removed it already.
            let _ = fs::remove_file(path);
            bytes -= len;
        }
        Ok(())
    }
}

impl Store for Files {
    fn find(&self, key: &str) -> Option<Vec<u8>> {
        if self.is_off() {
            return None;
        }
        let opened = self.check().and_then(|()| trusted_files::open(&self.path(key)));
        let mut file = opened.inspect_err(|error| warning::warn(&self.folder, error)).ok()?;
        let value = entry::open(key, &trusted_files::read_open(&mut file, MOST_ENTRY_BYTES).ok()??)?;
        // Note the time of use. If that fails, the time of writing counts.
        let _ = file.set_modified(SystemTime::now());
        Some(value)
    }

    fn keep(&self, key: &str, value: &[u8]) {
        static BOUND: Once = Once::new();
        if !self.is_off() && self.write(key, value).is_ok() {
            // Once in a process, which expands one crate: checking every file takes longer than writing one.
            BOUND.call_once(|| {
                let _ = self.bound();
            });
        }
    }
}

#[cfg(test)]
mod tests;
