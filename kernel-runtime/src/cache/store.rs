//! A directory of entries, shared by any number of threads and processes.
//!
//! ```text
//! DIR/v2/code/ ptx/ tuning/   entries, each a file named by the hash of its key
//! DIR/v2/tmp/                 entries that are being written; each is renamed when it is whole
//! DIR/v2/locks/               locks of those that make an entry, and of those that remove entries
//! DIR/v2/growth               a byte for each 4 KiB written since the store was last swept
//! ```
//!
//! An entry's file never changes: it is replaced, or removed. So a reader needs no lock, and a process that is killed at any instant leaves
//! a whole entry or none. Locks keep two processes from doing the same work; that what is read is right never depends on them.
//!
//! `v2` is the version of all formats in it. A Galatea of another version has a folder of its own beside it, and neither touches the other's.
//!
//! Every operation first checks that nobody else can have written the store ([`trusted_files`]): its three levels of folders, those above it, and the
//! file itself once it is open. What does not pass is refused with the reason, and is as good as not there.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use trusted_files::Refused;

use super::entry::{self, Key, Kind};

/// A directory where entries are kept, see [`cache`](super).
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    limit_bytes: u64,
}

/// Others wait for whoever has it. It ends with the value, or with the process.
#[must_use = "the lock ends when it is dropped"]
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "closing the file unlocks it")] File);

/// What a store grows to unless it is told otherwise.
const LIMIT_BYTES: u64 = 1 << 30;
/// What a file takes is counted in these.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// An entry's time is that of its last use, give or take this much: a read seldom writes.
const TIME_IS_FRESH: Duration = Duration::from_secs(60 * 60);
/// For as long as a rename takes.
const A_MOMENT: Duration = Duration::from_secs(1);
/// The folder of this version: see above.
const VERSION: &str = "v2";

impl Store {
    /// The store in this directory, which is made when the first entry is kept.
    pub fn open(directory: impl Into<PathBuf>) -> Store {
        Store { root: directory.into(), limit_bytes: LIMIT_BYTES }
    }

    /// The same, with another bound on what its files take together; 1 GiB otherwise. What was not used for longest goes first, records of
    /// tuning last.
    #[must_use]
    pub fn with_limit_bytes(self, limit_bytes: u64) -> Store {
        Store { limit_bytes, ..self }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.root
    }

    /// The most bytes that its files take together.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Checks that nobody else can write the store: its folders, and those above it, as far as they are there.
    ///
    /// # Errors
    /// What is refused and why, or what the system says. Nothing is read from such a store, and nothing kept in it.
    pub fn check(&self) -> io::Result<()> {
        trusted_files::check_way_to(&self.root)?;
        trusted_files::check_folder(&self.root)?;
        trusted_files::check_folder(&self.own())
    }

    /// What is kept for this key. A file that is no whole entry of the key is removed, and is none; so is one that somebody else can write, and stays.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        self.find(key).ok().flatten()
    }

    /// As [`Store::get`].
    ///
    /// # Errors
    /// Why the store, or the entry's file, is refused.
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

    /// Keeps the bytes for this key. When it returns `Ok`, every process finds them, whatever becomes of this one.
    ///
    /// # Errors
    /// What the system says: the disk is full, the directory cannot be written; why the store is refused; that the entry is larger than any that is
    /// read. Nothing is left behind then.
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
        // Records are small, and take seconds to make again: not even a power cut takes them. Of the others it may leave less than was written, which is
        // no entry, and is made again sooner than the disk would have stored it.
        let is_durable = key.kind() == Kind::Tuning;
        if is_durable {
            file.as_file().sync_all()?;
        }
        {
            // Nobody who saw a broken entry removes it while it becomes whole.
            let _lock = self.acquire(REMOVING, A_MOMENT);
            file.persist(self.path(key)).map_err(|failure| failure.error)?;
        }
        if is_durable {
            // The name is stored with its folder, not with the file.
            sync_folder(&folder);
        }
        self.grow(bytes.len() as u64);
        Ok(())
    }

    /// Removes what is kept for this key, because it turned out to be of no use.
    pub fn remove(&self, key: &Key) {
        self.remove_if(&self.path(key), |_| true);
    }

    /// The right to make what is missing for this key, so that others wait for it and need not make it too; none if somebody has had it for all
    /// that time, or the file system knows no locks. Who gets it looks once more before making anything. Keys may share a lock.
    pub fn lock(&self, key: &Key, patience: Duration) -> Option<Lock> {
        // Of the names' digits, which are hexadecimal, 64 groups.
        let group = u8::from_str_radix(&key.name()[..2], 16).unwrap_or(0) % 64;
        self.acquire(&format!("{}-{group}", key.kind()), patience)
    }

    /// What `read` makes of what is kept for this key, else what `make` gives, whose bytes are then kept: made once, if many ask at a time and
    /// none of them takes longer than `patience`. An entry that `read` gives none for is removed.
    ///
    /// # Errors
    /// Those of `make`. Why the store or an entry is refused, or the bytes could not be kept, is told to `on_failure`.
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

    /// The folder where entries are written.
    pub(super) fn tmp(&self) -> PathBuf {
        self.own().join(TMP)
    }

    /// Checks the store and the folder of a kind.
    pub(super) fn check_kind(&self, kind: Kind) -> io::Result<()> {
        self.check()?;
        trusted_files::check_folder(&self.folder(kind))
    }

    /// The right to remove entries.
    pub(super) fn lock_removing(&self) -> Option<Lock> {
        self.acquire(REMOVING, A_MOMENT)
    }

    /// Starts to count anew what is written.
    pub(super) fn forget_growth(&self) {
        let _ = trusted_files::options().write(true).open(self.own().join(GROWTH)).and_then(|file| file.set_len(0));
    }

    /// Removes the file in that place if it is still so when nobody may put another there.
    fn remove_if(&self, path: &Path, still: impl FnOnce(&mut File) -> bool) {
        let Some(_lock) = self.lock_removing() else { return };
        if trusted_files::open(path).is_ok_and(|mut file| still(&mut file)) {
            let _ = fs::remove_file(path);
        }
    }

    /// Counts what was written, and sweeps after a quarter of the limit: a sweep leaves three.
    fn grow(&self, bytes: u64) {
        let blocks = vec![b'.'; bytes.div_ceil(BLOCK_BYTES) as usize];
        let counted = trusted_files::options().create(true).append(true).open(self.own().join(GROWTH)).and_then(|mut file| {
            // One call, which appends all of it or nothing: no two processes count over each other.
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
        // Lock files stay: to remove one that somebody is about to lock would make two of it.
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

    /// Makes a folder of the store, and the store, for its owner alone, as the XDG specification has it; or checks what is there.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.check()?;
        if !folder.exists() {
            trusted_files::create_folder(folder)?;
            // Their names are stored with the folders above them.
            folder.ancestors().skip(1).take_while(|above| above.starts_with(&self.root)).chain(self.root.parent()).for_each(sync_folder);
            // Programs that back up homes leave it out: <https://bford.info/cachedir/>.
            let tag = trusted_files::options().write(true).create_new(true).open(self.root.join("CACHEDIR.TAG"));
            let _ = tag.and_then(|mut tag| {
                tag.write_all(b"Signature: 8a477f597d28d172789f06886806bc55\n# Made by Galatea; it may be removed at any time.\n")
            });
        }
        // Somebody else may have made it in the meantime.
        self.check()?;
        trusted_files::check_folder(folder)
    }
}

const TMP: &str = "tmp";
const LOCKS: &str = "locks";
const GROWTH: &str = "growth";
/// The lock of whoever removes entries, or puts one where a broken one may be.
const REMOVING: &str = "removing";

/// The payload, if the file is a whole entry of this key. One that is larger than an entry can be is not read.
fn read_entry(file: &mut File, key: &Key) -> Option<Vec<u8>> {
    entry::open(trusted_files::read_open(file, key.kind().most_bytes()).ok()??, key)
}

/// Has the names in a folder outlive a power cut. On file systems that cannot, or where a folder is no file, nothing is lost but that.
fn sync_folder(folder: &Path) {
    #[cfg(test)]
    tests::SYNCED.with_borrow_mut(|synced| synced.push(folder.to_owned()));
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    #[cfg(not(any(unix, test)))]
    let _ = folder;
}

/// Notes that an entry was used. A reader that may not note it reads all the same.
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
        // The names of all folders that were made, and that of the file, last of all.
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
