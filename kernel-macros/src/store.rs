//! The build's cache of variants: files in the folder that Cargo made for this crate inside of the target directory, so that `cargo clean` takes
//! them, too.
//!
//! An entry is found by a hash of its key, and begins with a checksum of key and value: what is torn, empty or another's is not there. Files are
//! written aside and renamed, so that builds side by side see whole ones; they are not synced, because what a power cut takes is compiled again. Nothing here
//! can fail a build: where a disk does not do as it is told, each variant is compiled, as without.
//!
//! An entry is code that the program will run unchecked. So the folder and the files must be this user's or root's, and nobody else may write them
//! ([`trusted_files`]); what is refused is told once, and not used. What is above the folder Cargo trusts with more: the compiler's own plug-ins lie there.

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

use kernel_lang::frontend::Store;

/// Entries in a folder.
pub(crate) struct Files {
    folder: PathBuf,
    most_bytes: u64,
}

/// What entries may take together, before those that nobody used for longest go: some ten thousand variants.
const MOST_BYTES: u64 = 256 << 20;
/// What one entry may take: a variant takes some 10 KiB, and an entry holds one for each target.
const MOST_ENTRY_BYTES: u64 = 64 << 20;
/// The folder of this version of the files' format. Another version of this crate that builds in the same place has another one.
const FOLDER: &str = "variants-v2";

impl Files {
    /// Of the build that this compiler is a part of. `GALATEA_BUILD_CACHE=off` keeps nothing.
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

    /// Can nobody else write the folder, if it is there?
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
        // One of that name was left by a process that was killed.
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

    /// Removes what nobody used for longest, down to three quarters of what there may be.
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
        let opened = self.check().and_then(|()| trusted_files::open(&self.path(key)));
        let mut file = opened.inspect_err(|error| warning::tell(&self.folder, error)).ok()?;
        let value = entry::open(key, &trusted_files::read_open(&mut file, MOST_ENTRY_BYTES).ok()??)?;
        // It was used now. Where that cannot be noted, it counts from when it was written.
        let _ = file.set_modified(SystemTime::now());
        Some(value)
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

#[cfg(test)]
mod tests;
