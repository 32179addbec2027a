//! A directory of entries, shared by any number of threads and processes.
//!
//! ```text
//! DIR/v2/code/ ptx/ tuning/   entries, each a file named by the hash of its key
//! DIR/v2/tmp/                 entries that are being written; each is renamed when it is whole
//! DIR/v2/locks/               locks of those that make an entry, and of those that remove entries
//! DIR/v2/growth               a byte for each 4 KiB written since the store was last swept
//! ```
//!
//! The file of an entry never changes: it is replaced or removed. So readers need no lock, and a process that is killed at any time leaves
//! a complete entry or none. Locks only prevent two processes from doing the same work; correctness of reads does not depend on them.
//!
//! `v2` is the version of all formats in the folder. Another version of Galatea uses its own folder beside it, and neither touches the
//! other's.
//!
//! Every operation first checks that no other user can have written the store ([`trusted_files`]): its three levels of folders, the folders
//! above them, and the file itself after it is opened. A store or file that fails the check is refused with the reason and treated as
//! missing.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use trusted_files::Refused;

use super::entry::{self, Key, Kind};

/// A directory of cache entries, see [`cache`](super).
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    limit_bytes: u64,
}

/// A lock between processes. It is released when the value is dropped or the process ends.
#[must_use = "the lock ends when it is dropped"]
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "closing the file unlocks it")] File);

/// The default size limit.
const LIMIT_BYTES: u64 = 1 << 30;
/// File sizes are rounded up to this unit.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// The time of last use is updated only if it is older than this, so that reads seldom write.
const TIME_IS_FRESH: Duration = Duration::from_secs(60 * 60);
/// The wait for a lock that is held for the duration of a rename.
const A_MOMENT: Duration = Duration::from_secs(1);
/// The folder of this version of the formats.
const VERSION: &str = "v2";

impl Store {
    /// The store in this directory. The directory is created when the first entry is stored.
    pub fn open(directory: impl Into<PathBuf>) -> Store {
        Store { root: directory.into(), limit_bytes: LIMIT_BYTES }
    }

    /// Sets the limit on the total size of the files in bytes; the default is 1 GiB. The least recently used entries are evicted first,
    /// tuning records last.
    #[must_use]
    pub fn with_limit_bytes(self, limit_bytes: u64) -> Store {
        Store { limit_bytes, ..self }
    }

    /// The directory of the store.
    pub fn directory(&self) -> &Path {
        &self.root
    }

    /// The limit on the total size of the files, in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Checks that no other user can write the store: its folders and those above it, as far as they exist.
    ///
    /// # Errors
    /// The reason why the store is refused, or the system's error. Nothing is read from or written to a refused store.
    pub fn check(&self) -> io::Result<()> {
        trusted_files::check_way_to(&self.root)?;
        trusted_files::check_folder(&self.root)?;
        trusted_files::check_folder(&self.own())
    }

    /// Returns the payload of this key. A file that is not a complete entry of the key is removed. A file that another user can write is
    /// ignored and left in place.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        self.find(key).ok().flatten()
    }

    /// As [`Store::get`].
    ///
    /// # Errors
    /// The reason why the store or the entry's file is refused.
    pub(super) fn find(&self, key: &Key) -> io::Result<Option<Vec<u8>>> {
        self.check_kind(key.kind())?;
        let path = self.path(key);
        let mut file = match trusted_files::open(&path) {
            Ok(file) => file,
            Err(error) if Refused::of(&error).is_some() => return Err(error),
            Err(_) => return Ok(None),
        };
        match read_entry(&mut file, key) {
            Some(payload) => {
                touch(&file);
                Ok(Some(payload))
            }
            None => {
                self.remove_if(&path, |file| read_entry(file, key).is_none());
                Ok(None)
            }
        }
    }

    /// Stores the payload of this key. After `Ok`, every process finds the entry, even if this process is killed.
    ///
    /// # Errors
    /// The system's error, for example if the disk is full or the directory cannot be written; the reason if the store is refused; or an
    /// error if the entry exceeds the maximum size of its kind. After an error no entry is left behind.
    pub fn put(&self, key: &Key, payload: &[u8]) -> io::Result<()> {
        let bytes = entry::seal(key, payload);
        if bytes.len() as u64 > key.kind().most_bytes() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("an entry of {} bytes is too large", bytes.len())));
        }
        let (tmp, folder) = (self.tmp(), self.folder(key.kind()));
        self.make_folder(&tmp)?;
        self.make_folder(&folder)?;
        let mut file = tempfile::Builder::new().prefix(key.kind().name()).tempfile_in(&tmp)?;
        file.write_all(&bytes)?;
        // Tuning records are small and take seconds to make again, so they are synced and survive a power failure. The other kinds may be
        // truncated by one: then they are no valid entries, and making them again takes less time than syncing them.
        let is_durable = key.kind() == Kind::Tuning;
        if is_durable {
            file.as_file().sync_all()?;
        }
        {
            // The lock prevents a process that saw a corrupt entry from removing the new one.
            let _lock = self.acquire(REMOVING, A_MOMENT);
            file.persist(self.path(key)).map_err(|failure| failure.error)?;
        }
        if is_durable {
            // The file's name is data of its folder, so the folder is synced too.
            sync_folder(&folder);
        }
        self.grow(bytes.len() as u64);
        Ok(())
    }

    /// Removes the entry of this key, because its payload proved unusable.
    pub fn remove(&self, key: &Key) {
        self.remove_if(&self.path(key), |_| true);
    }

    /// Locks this key, so that other processes wait instead of making the same entry. None if another process holds the lock for all of
    /// `patience`, or if the file system has no locks. The holder must look for the entry once more before making it. Several keys may
    /// share a lock.
    pub fn lock(&self, key: &Key, patience: Duration) -> Option<Lock> {
        // The first two hexadecimal digits select one of 64 groups.
        let group = u8::from_str_radix(&key.name()[..2], 16).unwrap_or(0) % 64;
        self.acquire(&format!("{}-{group}", key.kind()), patience)
    }

    /// Returns the result of `read` for the stored payload of this key. If there is none, returns the result of `make` and stores its
    /// bytes. Concurrent callers make the entry once, if that takes no longer than `patience`. An entry for which `read` returns none is
    /// removed.
    ///
    /// # Errors
    /// The errors of `make`. `on_failure` receives the reason if the store or an entry is refused, or the bytes cannot be stored.
    pub fn get_or_make<T, E>(
        &self,
        key: &Key,
        patience: Duration,
        mut read: impl FnMut(Vec<u8>) -> Option<T>,
        make: impl FnOnce() -> Result<(T, Vec<u8>), E>,
        mut on_failure: impl FnMut(io::Error),
    ) -> Result<T, E> {
        if let Err(error) = self.check_kind(key.kind()) {
            on_failure(error);
            return make().map(|(made, _)| made);
        }
        let mut find = || {
            let payload = self.find(key).unwrap_or_else(|error| {
                on_failure(error);
                None
            });
            let found = read(payload?);
            if found.is_none() {
                self.remove(key);
            }
            found
        };
        if let Some(found) = find() {
            return Ok(found);
        }
        let lock = self.lock(key, patience);
        if lock.is_some()
            && let Some(found) = find()
        {
            return Ok(found);
        }
        let (made, payload) = make()?;
        if let Err(error) = self.put(key, &payload) {
            on_failure(error);
        }
        Ok(made)
    }

    /// The folder of this version.
    fn own(&self) -> PathBuf {
        self.root.join(VERSION)
    }

    /// The folder of a kind of entries.
    pub(super) fn folder(&self, kind: Kind) -> PathBuf {
        self.own().join(kind.name())
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder(key.kind()).join(key.name())
    }

    /// The folder of temporary files.
    pub(super) fn tmp(&self) -> PathBuf {
        self.own().join(TMP)
    }

    /// Checks the store and the folder of a kind.
    pub(super) fn check_kind(&self, kind: Kind) -> io::Result<()> {
        self.check()?;
        trusted_files::check_folder(&self.folder(kind))
    }

    /// Locks the removal of entries.
    pub(super) fn lock_removing(&self) -> Option<Lock> {
        self.acquire(REMOVING, A_MOMENT)
    }

    /// Resets the count of written bytes.
    pub(super) fn forget_growth(&self) {
        let _ = trusted_files::options().write(true).open(self.own().join(GROWTH)).and_then(|file| file.set_len(0));
    }

    /// Removes the file if `still` holds for it under the lock, while no process can replace it.
    fn remove_if(&self, path: &Path, still: impl FnOnce(&mut File) -> bool) {
        let Some(_lock) = self.lock_removing() else { return };
        if trusted_files::open(path).is_ok_and(|mut file| still(&mut file)) {
            let _ = fs::remove_file(path);
        }
    }

    /// Counts the written bytes, and evicts entries once a quarter of the limit has been written: an eviction leaves three quarters.
    fn grow(&self, bytes: u64) {
        let blocks = vec![b'.'; bytes.div_ceil(BLOCK_BYTES) as usize];
        let counted = trusted_files::options().create(true).append(true).open(self.own().join(GROWTH)).and_then(|mut file| {
            // A single append call, so that concurrent processes do not overwrite each other's count.
            file.write_all(&blocks)?;
            Ok(file.metadata()?.len())
        });
        if counted.is_ok_and(|blocks| blocks.saturating_mul(BLOCK_BYTES) >= self.limit_bytes / 4) {
            self.sweep();
        }
    }

    fn acquire(&self, name: &str, patience: Duration) -> Option<Lock> {
        let folder = self.own().join(LOCKS);
        self.make_folder(&folder).ok()?;
        // Lock files are never removed: removing one that another process is about to lock would create a second lock.
        let file = trusted_files::options().create(true).append(true).open(folder.join(name)).ok()?;
        let (start, mut pause) = (Instant::now(), Duration::from_micros(100));
        loop {
            match file.try_lock() {
                Ok(()) => return Some(Lock(file)),
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => std::thread::sleep(pause),
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
            }
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }

    /// Creates a folder of the store, and the store itself, for its owner alone, as the XDG specification requires. Checks a folder that
    /// exists.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.check()?;
        if !folder.exists() {
            trusted_files::create_folder(folder)?;
            // The names of the new folders are data of their parent folders.
            folder.ancestors().skip(1).take_while(|above| above.starts_with(&self.root)).chain(self.root.parent()).for_each(sync_folder);
            // Backup programs skip a directory with this tag: <https://bford.info/cachedir/>.
            let tag = trusted_files::options().write(true).create_new(true).open(self.root.join("CACHEDIR.TAG"));
            let _ = tag.and_then(|mut tag| {
                tag.write_all(b"Signature: 8a477f597d28d172789f06886806bc55\n# Made by Galatea; it may be removed at any time.\n")
            });
        }
        // Another process may have created it in the meantime.
        self.check()?;
        trusted_files::check_folder(folder)
    }
}

const TMP: &str = "tmp";
const LOCKS: &str = "locks";
const GROWTH: &str = "growth";
/// The lock for removing entries, and for replacing one that may be corrupt.
const REMOVING: &str = "removing";

/// The payload, if the file is a complete entry of this key. A file above the maximum size is not read.
fn read_entry(file: &mut File, key: &Key) -> Option<Vec<u8>> {
    entry::open(trusted_files::read_open(file, key.kind().most_bytes()).ok()??, key)
}

/// Syncs the names in a folder, so that they survive a power failure. If the file system cannot sync folders, only that guarantee is lost.
fn sync_folder(folder: &Path) {
    #[cfg(test)]
    tests::SYNCED.with_borrow_mut(|synced| synced.push(folder.to_owned()));
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    #[cfg(not(any(unix, test)))]
    let _ = folder;
}

/// Updates the time of last use. A reader without write permission reads all the same.
fn touch(file: &File) {
    let now = SystemTime::now();
    let used = file.metadata().and_then(|metadata| metadata.modified());
    if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > TIME_IS_FRESH)) {
        let _ = file.set_modified(now);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        /// The folders that this thread has synced.
        pub(super) static SYNCED: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
    }

    fn synced() -> Vec<PathBuf> {
        SYNCED.with_borrow_mut(std::mem::take)
    }

    #[test]
    fn records_outlive_a_power_cut() {
        let outer = tempfile::tempdir().unwrap();
        let store = Store::open(outer.path().join("store"));
        let own = store.directory().join(VERSION);
        let key = |kind, number: &str| Key::new(kind, &[("number", number)]);
        store.put(&key(Kind::Tuning, "1"), b"record").unwrap();
        let first = synced();
        // The names of all created folders are synced, and the name of the file last.
        for folder in [outer.path(), store.directory(), &own] {
            assert!(first.iter().any(|synced| synced == folder), "{}: {first:?}", folder.display());
        }
        assert_eq!(first.last().unwrap(), &own.join("tuning"));
        store.put(&key(Kind::Tuning, "2"), b"record").unwrap();
        assert_eq!(synced(), [own.join("tuning")]);
        store.put(&key(Kind::Ptx, "1"), b"text").unwrap();
        synced();
        store.put(&key(Kind::Ptx, "2"), b"text").unwrap();
        assert!(synced().is_empty(), "it is sooner compiled again");
    }
}
