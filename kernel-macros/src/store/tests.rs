//! Faults of files and of the disk never fail a build.

use std::fs::File;

use super::*;

pub(super) fn folder(name: &str) -> Files {
    let folder = Path::new(env!("OUT_DIR")).join("tests").join(name);
    let _ = fs::remove_dir_all(&folder);
    Files { folder, most_bytes: 1000 }
}

#[test]
fn a_stored_entry_is_found() {
    let files = folder("stored");
    assert_eq!(files.find("key"), None);
    files.keep("key", b"value");
    files.keep("empty", b"");
    assert_eq!((files.find("key"), files.find("empty")), (Some(b"value".to_vec()), Some(Vec::new())));
    files.keep("key", b"another");
    assert_eq!(files.find("key"), Some(b"another".to_vec()));
    assert_eq!(fs::read_dir(&files.folder).unwrap().count(), 2, "nothing is left beside");
}

#[test]
fn what_is_torn_or_changed_is_not_there() {
    let files = folder("torn");
    files.keep("key", &[7; 100]);
    files.keep("other", b"value");
    let whole = fs::read(files.path("key")).unwrap();
    for len in 0..whole.len() {
        fs::write(files.path("key"), &whole[..len]).unwrap();
        assert_eq!(files.find("key"), None, "{len}");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 16;
        fs::write(files.path("key"), changed).unwrap();
        assert_eq!(files.find("key"), None, "{at}");
    }
    // A complete entry of another key.
    fs::copy(files.path("other"), files.path("key")).unwrap();
    assert_eq!(files.find("key"), None);
    fs::write(files.path("key"), &whole).unwrap();
    assert_eq!(files.find("key"), Some(vec![7; 100]));
}

#[test]
fn the_folder_is_bounded_and_what_was_used_stays() {
    let files = folder("bounded");
    let name = |at: usize| format!("key {at}");
    for at in 0..20 {
        files.write(&name(at), &[0; 92]).unwrap();
        let age = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + at as u64);
        File::options().write(true).open(files.path(&name(at))).unwrap().set_modified(age).unwrap();
    }
    assert!(files.find(&name(0)).is_some());
    files.bound().unwrap();
    let left: Vec<usize> = (0..20).filter(|at| files.find(&name(*at)).is_some()).collect();
    assert_eq!(left, [0, 14, 15, 16, 17, 18, 19]);
}

#[test]
fn an_unwritable_folder_stores_nothing() {
    let files = folder("file");
    fs::create_dir_all(files.folder.parent().unwrap()).unwrap();
    fs::write(&files.folder, b"a file, no folder").unwrap();
    files.keep("key", b"value");
    assert_eq!(files.find("key"), None);
    let off = Files { folder: PathBuf::new(), most_bytes: 1000 };
    off.keep("key", b"value");
    assert_eq!(off.find("key"), None);
}

#[test]
fn what_is_too_large_is_not_read() {
    let files = folder("large");
    files.keep("key", &[0; 2000]);
    assert_eq!(files.find("key"), Some(vec![0; 2000]));
    let large = File::options().write(true).open(files.path("key")).unwrap();
    large.set_len(MOST_ENTRY_BYTES + 1).unwrap();
    assert_eq!(files.find("key"), None);
    assert!(files.write("key", &vec![0; MOST_ENTRY_BYTES as usize]).is_err(), "what would not be read is not written");
}
