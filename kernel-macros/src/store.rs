//! The build's cache of variants: files in the folder that Cargo made for this crate inside of the target directory, so that `cargo clean` takes
//! them, too.
//!
//! An entry is found by a hash of its key, and begins with a checksum of key and value: what is torn, empty or another's is not there. Files are
//! written aside and renamed, so that builds side by side see whole ones. Nothing here can fail a build: where a disk does not do as it is told, each
//! variant is compiled, as without.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use kernel_lang::frontend::Store;

/// Entries in a folder.
pub(crate) struct Files {
    folder: PathBuf,
    most_bytes: u64,
}

/// What entries may take together, before those that nobody used for longest go: some ten thousand variants.
const MOST_BYTES: u64 = 256 << 20;

impl Files {
    /// Of the build that this compiler is a part of. `GALATEA_BUILD_CACHE=off` keeps nothing.
    pub(crate) fn of_this_target() -> Files {
        let is_off = std::env::var_os("GALATEA_BUILD_CACHE").is_some_and(|value| value == "off");
        let folder = if is_off { PathBuf::new() } else { Path::new(env!("OUT_DIR")).join("variants") };
        Files { folder, most_bytes: MOST_BYTES }
    }

    fn is_off(&self) -> bool {
        self.folder.as_os_str().is_empty()
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{:016x}{:016x}", hash(1, &[key.as_bytes()]), hash(2, &[key.as_bytes()])))
    }

    fn write(&self, key: &str, value: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        fs::create_dir_all(&self.folder)?;
        let aside = self.folder.join(format!("{}-{}.new", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        let entry = [&checksum(key, value).to_le_bytes()[..], value].concat();
        let done = fs::write(&aside, entry).and_then(|()| fs::rename(&aside, self.path(key)));
        if done.is_err() {
            let _ = fs::remove_file(&aside);
        }
        done
    }

    /// Removes what nobody used for longest, down to three quarters of what there may be.
    fn bound(&self) -> io::Result<()> {
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
            // Another build may have been faster.
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
        let path = self.path(key);
        let entry = fs::read(&path).ok()?;
        let (sum, value) = entry.split_at_checked(8)?;
        if sum != checksum(key, value).to_le_bytes() {
            return None;
        }
        // It was used now. Where that cannot be noted, it counts from when it was written.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(value.to_vec())
    }

    fn keep(&self, key: &str, value: &[u8]) {
        static BOUND: Once = Once::new();
        if !self.is_off() && self.write(key, value).is_ok() {
            // Once a process, which expands one crate: looking at every file takes longer than writing one.
            BOUND.call_once(|| {
                let _ = self.bound();
            });
        }
    }
}

fn checksum(key: &str, value: &[u8]) -> u64 {
    hash(3, &[key.as_bytes(), value])
}

fn hash(seed: u8, parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(seed);
    for part in parts {
        hasher.write_usize(part.len());
        hasher.write(part);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
