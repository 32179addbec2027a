//! All that a store holds: listing, clearing, and keeping it within its bound.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::entry::{self, Key, Kind};
use super::store::{BLOCK_BYTES, Store};

/// An entry as a list shows it. Its payload has not been read.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is of.
    pub key: Key,
    /// What its file holds.
    pub bytes: u64,
    /// When it was used last, to within an hour.
    pub used: SystemTime,
}

/// A file that is written for longer was left by somebody who is no more.
const TMP_IS_STALE: Duration = Duration::from_secs(60 * 60);

impl Store {
    /// All entries, those used last first. A store that is not there has none, and a file that somebody else can write is none.
    ///
    /// # Errors
    /// What the system says of the directory, or why it is refused.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for kind in Kind::ALL {
            for file in self.files(kind)? {
                // A process that sweeps may have been faster.
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

    /// Removes all entries of these kinds; says how many files it removed, and their bytes.
    ///
    /// # Errors
    /// What the system says of a file that cannot be removed; the others are gone. Why the store is refused; then nothing is removed.
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

    /// Removes what was not used for longest until three quarters of the limit are left, and what the dead left half written.
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
        // Records of tuning are small, and a second of a GPU each: they go last.
        all.sort_by_key(|(kind, file)| (*kind != Kind::Tuning, std::cmp::Reverse(file.used)));
        let mut taken = 0;
        for (_, file) in all {
            taken += file.bytes.next_multiple_of(BLOCK_BYTES);
            // Somebody may have used it since.
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

/// A file and what the system knows of it.
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
