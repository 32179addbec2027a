//! Kills, broken files, and disks that cannot be written.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use kernel_runtime::cache::{Key, Kind, Store};

use crate::Test;
use crate::children::{child, numbered, outputs, succeed};
use crate::random::Random;

pub(crate) const TESTS: &[Test] = &[
    ("a_killed_process_leaves_only_complete_entries_and_all_that_it_reported_as_saved", killed),
    ("a_broken_file_is_no_entry_and_is_removed", broken),
    ("a_file_of_another_entry_or_format_is_no_entry", foreign),
    ("a_read_only_store_is_still_read", read_only),
    ("a_directory_that_vanishes_is_made_again", vanishes),
    ("a_full_disk_loses_nothing_but_what_does_not_fit", full),
];

/// The folder of this version in a store.
pub(crate) const VERSION: &str = "v2";

/// The file of an entry.
pub(crate) fn file(store: &Store, key: &Key) -> PathBuf {
    store.directory().join(VERSION).join(key.kind().to_string()).join(key.name())
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path()).collect()
}

fn killed() {
    let mut random = Random::new();
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    let (mut reported, mut cut_short) = (0, 0);
    for seed in 0..200 {
        let mut child = child("write", directory.path(), seed).spawn().unwrap();
        // One in four while it makes the folders, or starts.
        if random.below(4) > 0 {
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        }
        std::thread::sleep(Duration::from_micros(random.below(20_000) as u64));
        child.kill().unwrap();
        let (out, _, _) = outputs(child);
        // The first digit has been read; the last line may be cut, and is of an entry that is there all the same.
        let saved = out.lines().count() as u64;
        for i in 0..saved {
            let (key, payload) = numbered(seed, i);
            assert!(store.get(&key) == Some(payload), "entry {i} of {saved} of seed {seed} was reported saved, and is lost");
        }
        reported += saved;
        // The next one was being kept, or reported.
        let (key, payload) = numbered(seed, saved);
        match store.get(&key) {
            Some(found) => assert!(found == payload, "entry {saved} of seed {seed} is another one"),
            None => cut_short += 1,
        }
        let left = files(&directory.path().join(VERSION).join("code")).len() + files(&directory.path().join(VERSION).join("ptx")).len();
        if left > 2000 {
            store.clear(&[Kind::Code, Kind::Ptx]).unwrap();
        }
    }
    let tmp = files(&directory.path().join(VERSION).join("tmp"));
    println!("{reported} entries were reported; {cut_short} kills came before one was whole; {} files were left half written", tmp.len());
    assert!(reported > 50 && cut_short > 0 && !tmp.is_empty() && tmp.len() <= 200);

    // A sweep removes the temporary files of killed processes when they are old enough.
    store.sweep();
    assert_eq!(files(&directory.path().join(VERSION).join("tmp")).len(), tmp.len());
    for path in &tmp {
        let old = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
        fs::File::open(path).unwrap().set_modified(old).unwrap();
    }
    store.sweep();
    assert!(files(&directory.path().join(VERSION).join("tmp")).is_empty());
}

fn broken() {
    let mut random = Random::new();
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    let key = Key::new(Kind::Code, &[("kernel", "silu"), ("driver", "13.0")]);
    let payload = random.bytes(3000);
    store.put(&key, &payload).unwrap();
    let path = file(&store, &key);
    let whole = fs::read(&path).unwrap();
    assert_eq!(store.get(&key).as_deref(), Some(&payload[..]));
    for iteration in 0..3000 {
        let mut bytes = whole.clone();
        let at = random.below(bytes.len());
        match iteration % 6 {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => bytes.extend(random.bytes(at + 1)),
            3 => bytes[at..].fill(0),
            4 => bytes = random.bytes(at),
            _ => {
                bytes.remove(at);
            }
        }
        fs::write(&path, &bytes).unwrap();
        // Zeros may have stood there before.
        let expected = (bytes == whole).then(|| payload.clone());
        assert!(store.get(&key) == expected, "iteration {iteration}, at {at}");
        assert_eq!(path.exists(), bytes == whole, "iteration {iteration}, at {at}");
    }
    store.put(&key, &payload).unwrap();
    assert_eq!(store.get(&key), Some(payload));
}

fn foreign() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    let [old, new] = ["13.0", "13.1"].map(|driver| Key::new(Kind::Code, &[("driver", driver)]));
    store.put(&old, b"code").unwrap();
    assert_eq!(store.get(&new), None, "another driver makes its own code");
    fs::rename(file(&store, &old), file(&store, &new)).unwrap();
    assert_eq!((store.get(&new), file(&store, &new).exists()), (None, false));

    store.put(&old, b"code").unwrap();
    let text = String::from_utf8(fs::read(file(&store, &old)).unwrap()).unwrap();
    fs::write(file(&store, &old), text.replacen("galatea-cache 2", "galatea-cache 3", 1)).unwrap();
    assert_eq!((store.get(&old), file(&store, &old).exists()), (None, false));

    // A folder, or a file with another name, is not an entry and does no harm.
    fs::create_dir(file(&store, &old)).unwrap();
    assert!(store.get(&old).is_none() && store.put(&old, b"code").is_err() && store.get(&old).is_none());
    fs::write(directory.path().join(VERSION).join("code").join("notes.txt"), "mine").unwrap();
    assert!(store.entries().unwrap().is_empty());
}

fn vanishes() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("store"));
    let (key, payload) = numbered(3, 0);
    for _ in 0..3 {
        assert!(store.get(&key).is_none() && store.entries().unwrap().is_empty());
        store.put(&key, &payload).unwrap();
        let lock = store.lock(&key, Duration::ZERO).unwrap();
        fs::remove_dir_all(store.directory()).unwrap();
        drop(lock);
        store.sweep();
    }
}

fn read_only() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("store");
    let store = Store::open(&directory);
    // The child runs as somebody whom the system refuses: root is refused nothing, but others may not come where this executable is.
    let is_root = fs::metadata(outer.path()).unwrap().uid() == 0;
    let program = outer.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let run = || {
        let mut command = child("launch", &directory, 3);
        command.env("GALATEA_CACHE", &directory);
        if is_root {
            command = with_environment(Command::new(&program), &command);
            command.uid(65534);
        }
        succeed(command)
    };
    let seal = |mode_of_folders, mode_of_files| {
        let mut paths = vec![outer.path().to_owned(), directory.clone()];
        paths.extend(files(&directory));
        paths.extend(files(&directory.join(VERSION)));
        paths.extend(["code", "ptx", "tuning", "tmp", "locks"].iter().flat_map(|folder| files(&directory.join(VERSION).join(folder))));
        for path in paths {
            let mode = if path.is_dir() { mode_of_folders } else { mode_of_files };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let mut open = child("launch", &directory, 3);
    open.env("GALATEA_CACHE", &directory);
    assert_eq!(succeed(open).0, "7\n");
    let [first, second] = [0, 1].map(|i| store.entries().unwrap()[i].key.clone());
    seal(0o555, 0o444);
    assert_eq!(run(), ("7\n".to_owned(), String::new()), "both variants are found");

    // One is broken: it is compiled, cannot be kept, and the reason is told once.
    seal(0o755, 0o644);
    fs::write(file(&store, &first), "broken").unwrap();
    fs::write(file(&store, &second), "broken").unwrap();
    seal(0o555, 0o444);
    let (out, err) = run();
    assert_eq!((out.as_str(), err.matches("warning: cannot keep").count()), ("7\n", 1), "{err}");
    assert!(err.contains("ermission denied") && err.contains("GALATEA_CACHE"), "{err}");
    seal(0o755, 0o644);
}

/// The command, with the environment and the pipes of a child.
pub(crate) fn with_environment(mut command: Command, child: &Command) -> Command {
    for (name, value) in child.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A child that may write no file beyond so many blocks of 512 bytes, as where the disk is full.
fn bounded(blocks: u32, child: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\"")).arg(child.get_program());
    with_environment(shell, child)
}

fn full() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    let old = Key::new(Kind::Tuning, &[("kernel", "old")]);
    store.put(&old, b"record").unwrap();
    let (out, _) = succeed(bounded(64, &child("fill", directory.path(), 0)));
    assert_eq!(out, "large false false\nsmall true true\n");
    assert!(files(&directory.path().join(VERSION).join("tmp")).is_empty(), "nothing is left half written");
    assert_eq!(store.get(&old).unwrap(), b"record");

    let mut launch = child("launch", directory.path(), 3);
    launch.env("GALATEA_CACHE", directory.path());
    let (out, err) = succeed(bounded(0, &launch));
    assert_eq!((out.as_str(), err.matches("warning: cannot keep").count()), ("7\n", 1), "{err}");
    assert!(store.entries().unwrap().iter().all(|entry| entry.key.kind() != Kind::Ptx));
    assert_eq!(store.get(&old).unwrap(), b"record");
}
