//! The contents of a store: listing, clearing and eviction.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::entry::{self, Key, Kind};
use super::store::{BLOCK_BYTES, Store};

/// An entry of a listing. Its payload has not been read.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The size of its file in bytes.
    pub bytes: u64,
    /// The time of the last use, accurate to an hour.
    pub used: SystemTime,
}

/// A temporary file older than this belongs to a process that has ended.
const TMP_IS_STALE: Duration = Duration::from_secs(60 * 60);

impl Store {
    /// All entries, most recently used first. A store that does not exist has none. A file that another user can write is left out.
    ///
    /// # Errors
    /// The system's error for the directory, or the reason why the store is refused.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for kind in Kind::ALL {
            for file in self.files(kind)? {
                // Another process may have evicted it.
                let Ok(opened) = trusted_files::open(&file.path) else { continue };
                let name = file.path.file_name().unwrap_or_default().to_string_lossy();
                if let Ok(Some(key)) = entry::read_key(opened, kind, &name) {
                    entries.push(Entry { key, bytes: file.bytes, used: file.used });
                }
            }
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
        Ok(entries)
    }

    /// Removes all entries of these kinds. Returns the number of removed files and their total size in bytes.
    ///
    /// # Errors
    /// The system's error if a file cannot be removed; the other files are removed. The reason if the store is refused; then no file is
    /// removed.
    pub fn clear(&self, kinds: &[Kind]) -> io::Result<(usize, u64)> {
        let _lock = self.lock_removing();
        let (mut count, mut bytes, mut result) = (0, 0, Ok(()));
        for &kind in kinds {
            for file in self.files(kind)? {
                match fs::remove_file(&file.path) {
                    Ok(()) => (count, bytes) = (count + 1, bytes + file.bytes),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => result = Err(error),
                }
            }
        }
        result.map(|()| (count, bytes))
    }

    /// Evicts the least recently used entries until at most three quarters of the limit are in use, and removes stale temporary files.
    pub fn sweep(&self) {
        let Some(_lock) = self.lock_removing() else { return };
        self.forget_growth();
        let now = SystemTime::now();
        if trusted_files::check_folder(&self.tmp()).is_err() {
            return;
        }
        for file in files(self.tmp()).unwrap_or_default() {
            if now.duration_since(file.used).is_ok_and(|age| age > TMP_IS_STALE) {
                let _ = fs::remove_file(file.path);
            }
        }
        let all = Kind::ALL.into_iter().flat_map(|kind| self.files(kind).unwrap_or_default().into_iter().map(move |file| (kind, file)));
        let mut all: Vec<(Kind, Listed)> = all.collect();
        // Tuning records are small and cost about a second of GPU time each, so they are evicted last.
        all.sort_by_key(|(kind, file)| (*kind != Kind::Tuning, std::cmp::Reverse(file.used)));
        let mut taken = 0;
        for (_, file) in all {
            taken += file.bytes.next_multiple_of(BLOCK_BYTES);
            // Another process may have used the entry since the listing.
            let used = || fs::metadata(&file.path).and_then(|metadata| metadata.modified()).unwrap_or(file.used);
            if taken > self.limit_bytes() / 4 * 3 && used() == file.used {
                let _ = fs::remove_file(&file.path);
            }
        }
    }

    fn files(&self, kind: Kind) -> io::Result<Vec<Listed>> {
        self.check_kind(kind)?;
        files(self.folder(kind))
    }
}

/// A file with its size and time of last use.
struct Listed {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

fn files(folder: PathBuf) -> io::Result<Vec<Listed>> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let known = |file: fs::DirEntry| {
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Listed { path: file.path(), bytes: metadata.len(), used: metadata.modified().ok()? })
    };
    Ok(listed.filter_map(|file| known(file.ok()?)).collect())
}
