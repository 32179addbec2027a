//! Stores that somebody else may have written, and entries of other versions: what is refused, what is said of it, and what is left alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use kernel_runtime::cache::{Entry, Key, Kind, Store};

use crate::Test;
use crate::children::{child, succeed};
use crate::faults::{VERSION, file, files, with_environment};

pub(crate) const TESTS: &[Test] = &[
    ("a_folder_that_others_can_write_is_refused", writable_folders),
    ("a_folder_above_the_store_that_others_can_write_is_refused", writable_above),
    ("a_store_behind_a_symlink_is_refused", symlinks),
    ("a_file_that_others_can_write_or_a_symlink_is_no_entry", files_of_others),
    ("entries_of_a_refused_store_are_neither_listed_nor_removed", refused_whole),
    ("folders_and_files_are_for_their_owner_alone_whatever_the_umask", modes),
    ("entries_of_other_versions_are_left_alone", other_versions),
    ("a_file_that_is_too_large_is_refused_before_it_is_read", too_large),
];

/// Tests that give files to another user, which only root can.
pub(crate) const OF_ROOT: &[Test] = &[("what_belongs_to_another_user_is_refused", other_owner)];

/// Somebody else.
const OTHER: u32 = 65533;

/// Can this process give files away?
pub(crate) fn is_root() -> bool {
    tempfile::tempdir().is_ok_and(|directory| fs::metadata(directory.path()).is_ok_and(|metadata| metadata.uid() == 0))
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A store in which the launch of a child finds what computes 5 instead of 7: so it shows whether it was used.
fn planted(directory: &Path) -> (Store, Entry) {
    let store = Store::open(directory);
    launch(directory);
    let entry = store.entries().unwrap().into_iter().find(|entry| entry.key.field("values").unwrap().ends_with("64")).unwrap();
    let text = String::from_utf8(store.get(&entry.key).unwrap()).unwrap();
    store.put(&entry.key, text.replace("add.rn.f32", "sub.rn.f32").as_bytes()).unwrap();
    assert_eq!(launch(directory), ("5\n".to_owned(), String::new()), "it is used");
    (store, entry)
}

/// Runs a child that launches a kernel with that store: its result, and its standard error.
fn launch(directory: &Path) -> (String, String) {
    let mut command = child("launch", directory, 3);
    command.env("GALATEA_CACHE", directory);
    succeed(command)
}

/// The launch works without the store, and one warning says why, where and what to do.
#[track_caller]
fn check_refused(directory: &Path, about: &Path, why: &str, mend: &str) {
    let (out, err) = launch(directory);
    assert_eq!(out, "7\n", "what others may have written was used; {err}");
    let about = about.display().to_string();
    assert_eq!(err.matches("warning: ").count(), 1, "{err}");
    assert!(
        err.contains(&about) && err.contains(why) && err.contains(mend) && err.contains("GALATEA_CACHE"),
        "{about}, {why}, {mend}: {err}"
    );
}

fn writable_folders() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("store");
    let (store, entry) = planted(&directory);
    let own = directory.join(VERSION);
    for folder in [directory.clone(), own.clone(), own.join("ptx")] {
        for (mode, who) in [(0o770, "its group"), (0o775, "its group"), (0o777, "everybody"), (0o702, "everybody"), (0o1777, "everybody")] {
            set_mode(&folder, mode);
            check_refused(&directory, &folder, who, "chmod go-w");
            assert!(store.get(&entry.key).is_none() && store.put(&entry.key, b"more").is_err());
        }
        set_mode(&folder, 0o755);
        assert_eq!(launch(&directory), ("5\n".to_owned(), String::new()), "others may read it");
        set_mode(&folder, 0o700);
    }
}

fn writable_above() {
    let outer = tempfile::tempdir().unwrap();
    let above = outer.path().join("shared");
    let directory = above.join("mine").join("store");
    planted(&directory);
    for mode in [0o775, 0o777] {
        set_mode(&above, mode);
        check_refused(&directory, &above, "can be written by", "chmod go-w");
    }
    // As in `/tmp`, nobody can put another folder in the place of this one.
    set_mode(&above, 0o1777);
    assert_eq!(launch(&directory), ("5\n".to_owned(), String::new()));
}

fn symlinks() {
    let outer = tempfile::tempdir().unwrap();
    let [directory, link] = ["store", "link"].map(|name| outer.path().join(name));
    planted(&directory);
    symlink(&directory, &link).unwrap();
    check_refused(&link, &link, "is a symbolic link", &directory.display().to_string());
    let own = directory.join(VERSION);
    let elsewhere = outer.path().join("elsewhere");
    fs::rename(own.join("ptx"), &elsewhere).unwrap();
    symlink(&elsewhere, own.join("ptx")).unwrap();
    check_refused(&directory, &own.join("ptx"), "is a symbolic link", "");
    fs::remove_file(own.join("ptx")).unwrap();
    fs::rename(&elsewhere, own.join("ptx")).unwrap();

    // One above the store is a way like any other if it is one's own; both of its sides count.
    let [home, scratch] = ["home", "scratch"].map(|name| outer.path().join(name));
    fs::create_dir(&scratch).unwrap();
    symlink("scratch", &home).unwrap();
    fs::rename(&directory, scratch.join("store")).unwrap();
    assert_eq!(launch(&home.join("store")), ("5\n".to_owned(), String::new()));
    set_mode(&scratch, 0o777);
    check_refused(&home.join("store"), &scratch, "everybody", "chmod go-w");
}

fn files_of_others() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("store");
    let (store, entry) = planted(&directory);
    let path = file(&store, &entry.key);
    let bad = fs::read(&path).unwrap();
    for mode in [0o660, 0o666, 0o602] {
        fs::write(&path, &bad).unwrap();
        set_mode(&path, mode);
        assert!(store.get(&entry.key).is_none());
        check_refused(&directory, &path, "can be written by", "chmod go-w");
        // The newly compiled entry has replaced the refused one.
        assert_eq!(launch(&directory), ("7\n".to_owned(), String::new()));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }
    let elsewhere = outer.path().join("elsewhere");
    fs::write(&elsewhere, &bad).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(store.get(&entry.key).is_none());
    check_refused(&directory, &path, "is a symbolic link", "");
    assert!(fs::symlink_metadata(&path).unwrap().is_file() && fs::read(&elsewhere).unwrap() == bad, "only the link was replaced");

    // A file whose opening blocks is refused.
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(store.get(&entry.key).is_none());
}

fn refused_whole() {
    let outer = tempfile::tempdir().unwrap();
    let [directory, link] = ["store", "link"].map(|name| outer.path().join(name));
    let (store, _) = planted(&directory);
    symlink(&directory, &link).unwrap();
    let count = || files(&directory.join(VERSION).join("ptx")).len();
    let before = count();
    for (refused, mode) in [(Store::open(&link), 0o700), (store.clone(), 0o777)] {
        set_mode(&directory, mode);
        let said = refused.entries().unwrap_err().to_string();
        assert!(said.contains("is a symbolic link") || said.contains("everybody"), "{said}");
        assert!(refused.clear(&Kind::ALL).is_err() && refused.lock(&Key::new(Kind::Ptx, &[]), std::time::Duration::ZERO).is_none());
        refused.with_limit_bytes(1).sweep();
        assert_eq!(count(), before);
    }
}

fn other_owner() {
    let outer = tempfile::tempdir().unwrap();
    let above = outer.path().join("theirs");
    let directory = above.join("store");
    let (store, entry) = planted(&directory);
    let (own, path) = (directory.join(VERSION), file(&store, &entry.key));
    let bad = fs::read(&path).unwrap();
    for folder in [above, directory.clone(), own.clone(), own.join("ptx")] {
        chown(&folder, Some(OTHER), None).unwrap();
        check_refused(&directory, &folder, "belongs to user 65533", "chown");
        chown(&folder, Some(0), None).unwrap();
    }
    fs::write(&path, &bad).unwrap();
    chown(&path, Some(OTHER), None).unwrap();
    check_refused(&directory, &path, "belongs to user 65533", "");
    assert_eq!(launch(&directory), ("7\n".to_owned(), String::new()), "it was replaced");

    // A link above the store that somebody else has put there.
    let link = outer.path().join("link");
    symlink(outer.path().join("theirs"), &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(OTHER), None).unwrap();
    check_refused(&link.join("store"), &link, "belongs to user 65533", "");
}

fn modes() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("store");
    let mut launch = child("launch", &directory, 3);
    launch.env("GALATEA_CACHE", &directory);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg("umask 000; exec \"$0\"").arg(launch.get_program());
    assert_eq!(succeed(with_environment(shell, &launch)), ("7\n".to_owned(), String::new()));
    let mut folders = vec![directory.clone()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700, "{}", folder.display());
        for path in files(&folder) {
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(metadata.mode() & 0o022, 0, "{}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 4, "two entries, the tag and a lock at least");
}

fn other_versions() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    let key = Key::new(Kind::Code, &[("kernel", "silu")]);
    store.put(&key, b"ours").unwrap();
    let ours = fs::read(file(&store, &key)).unwrap();
    // Of the first version, whose folders stood in the directory itself, and of one that is still to come.
    let theirs: Vec<PathBuf> = ["code", "v99/code"].iter().map(|folder| directory.path().join(folder).join(key.name())).collect();
    for path in &theirs {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = String::from_utf8(ours.clone()).unwrap();
        let first = text.split(' ').take(2).collect::<Vec<_>>().join(" ");
        fs::write(path, text.replacen(&first, "galatea-cache 99", 1)).unwrap();
    }
    store.remove(&key);
    assert!(store.get(&key).is_none() && store.entries().unwrap().is_empty());
    store.put(&key, b"ours").unwrap();
    assert_eq!(store.get(&key).as_deref(), Some(&b"ours"[..]));
    store.clone().with_limit_bytes(1).sweep();
    store.clear(&Kind::ALL).unwrap();
    assert!(theirs.iter().all(|path| path.exists()), "entries of other versions are theirs to remove");
}

fn too_large() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    for kind in Kind::ALL {
        let key = Key::new(kind, &[("size", "large")]);
        store.put(&key, b"small").unwrap();
        let large = fs::File::options().write(true).open(file(&store, &key)).unwrap();
        large.set_len(1 << 30).unwrap();
        let mut read = child("read", directory.path(), Kind::ALL.iter().position(|other| *other == kind).unwrap() as u64);
        read.env("GALATEA_CACHE", "off");
        let (out, _) = succeed(read);
        let peak_kib: u64 = out.trim().parse().unwrap();
        assert!(peak_kib < 300 << 10, "{peak_kib} KiB were read of {kind}");
        assert!(!file(&store, &key).exists(), "it is no entry");
    }
    let key = Key::new(Kind::Tuning, &[("size", "large")]);
    assert!(store.put(&key, &vec![b'.'; 5 << 20]).is_err(), "what would not be read is not written");
    assert!(store.get(&key).is_none());
}
