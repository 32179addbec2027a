//! A directory of entries, shared by any number of threads and processes.
//!
//! ```text
//! DIR/code/ ptx/ tuning/   entries, each a file named by the hash of its key
//! DIR/tmp/                 entries that are being written; each is renamed into its place when it is whole
//! DIR/locks/               who makes what others wait for, and who removes
//! DIR/growth               a byte for each 4 KiB written since the store was last swept
//! ```
//!
//! A file in its place never changes: it is replaced, or removed. So a reader needs no lock, and whoever is killed at whatever instant leaves
//! a whole entry or none. Locks keep two from doing the same work; that what is read is right never depends on them.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

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

    /// What is kept for this key. A file that is no whole entry of the key is removed, and is none.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        match entry::open(read_all(&mut file)?, key) {
            Some(payload) => {
                touch(&file);
                Some(payload)
            }
            None => {
                self.remove_if(&path, |file| read_all(file).is_none_or(|bytes| entry::open(bytes, key).is_none()));
                None
            }
        }
    }

    /// Keeps the bytes for this key. When it returns `Ok`, every process finds them, whatever becomes of this one.
    ///
    /// # Errors
    /// What the system says: the disk is full, the directory cannot be written. Nothing is left behind then.
    pub fn put(&self, key: &Key, payload: &[u8]) -> io::Result<()> {
        let (tmp, path) = (self.root.join(TMP), self.path(key));
        self.make_folder(&tmp)?;
        self.make_folder(&self.root.join(key.kind().name()))?;
        let bytes = entry::seal(key, payload);
        let mut file = tempfile::Builder::new().prefix(key.kind().name()).tempfile_in(&tmp)?;
        file.write_all(&bytes)?;
        if key.kind() == Kind::Tuning {
            // Small, and dear to make again: not even a power cut takes it.
            file.as_file().sync_all()?;
        }
        {
            // Nobody who saw a broken entry removes it while it becomes whole.
            let _lock = self.acquire(REMOVING, A_MOMENT);
            file.persist(path).map_err(|failure| failure.error)?;
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
    /// Those of `make`. Why its bytes could not be kept is told to `on_failure`.
    pub fn get_or_make<T, E>(
        &self,
        key: &Key,
        patience: Duration,
        mut read: impl FnMut(Vec<u8>) -> Option<T>,
        make: impl FnOnce() -> Result<(T, Vec<u8>), E>,
        on_failure: impl FnOnce(io::Error),
    ) -> Result<T, E> {
        let mut find = || {
            let found = read(self.get(key)?);
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

    pub(super) fn path(&self, key: &Key) -> PathBuf {
        self.root.join(key.kind().name()).join(key.name())
    }

    /// The folder where entries are written.
    pub(super) fn tmp(&self) -> PathBuf {
        self.root.join(TMP)
    }

    /// The right to remove entries.
    pub(super) fn lock_removing(&self) -> Option<Lock> {
        self.acquire(REMOVING, A_MOMENT)
    }

    /// Starts to count anew what is written.
    pub(super) fn forget_growth(&self) {
        let _ = OpenOptions::new().write(true).open(self.root.join(GROWTH)).and_then(|file| file.set_len(0));
    }

    /// Removes the file in that place if it is still so when nobody may put another there.
    fn remove_if(&self, path: &Path, still: impl FnOnce(&mut File) -> bool) {
        let Some(_lock) = self.lock_removing() else { return };
        if File::open(path).is_ok_and(|mut file| still(&mut file)) {
            let _ = fs::remove_file(path);
        }
    }

    /// Counts what was written, and sweeps after a quarter of the limit: a sweep leaves three.
    fn grow(&self, bytes: u64) {
        let blocks = vec![b'.'; bytes.div_ceil(BLOCK_BYTES) as usize];
        let counted = OpenOptions::new().create(true).append(true).open(self.root.join(GROWTH)).and_then(|mut file| {
            // One call, which appends all of it or nothing: no two processes count over each other.
            file.write_all(&blocks)?;
            Ok(file.metadata()?.len())
        });
        if counted.is_ok_and(|blocks| blocks.saturating_mul(BLOCK_BYTES) >= self.limit_bytes / 4) {
            self.sweep();
        }
    }

    fn acquire(&self, name: &str, patience: Duration) -> Option<Lock> {
        let folder = self.root.join(LOCKS);
        self.make_folder(&folder).ok()?;
        // Lock files stay: to remove one that somebody is about to lock would make two of it.
        let file = OpenOptions::new().create(true).append(true).open(folder.join(name)).ok()?;
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

    /// Makes a folder of the store, and the store: for its owner alone, as the XDG specification has it.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        // Programs that back up homes leave it out: <https://bford.info/cachedir/>.
        let tag = self.root.join("CACHEDIR.TAG");
        if !tag.exists() {
            let _ = fs::write(tag, "Signature: 8a477f597d28d172789f06886806bc55\n# Made by Galatea; it may be removed at any time.\n");
        }
        Ok(())
    }
}

const TMP: &str = "tmp";
const LOCKS: &str = "locks";
const GROWTH: &str = "growth";
/// The lock of whoever removes entries, or puts one where a broken one may be.
const REMOVING: &str = "removing";

fn read_all(file: &mut File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok().map(|_| bytes)
}

/// Notes that an entry was used. A reader that may not note it reads all the same.
fn touch(file: &File) {
    let now = SystemTime::now();
    let used = file.metadata().and_then(|metadata| metadata.modified());
    if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > TIME_IS_FRESH)) {
        let _ = file.set_modified(now);
    }
}
