//! Builds do not use files that another user can write.
#![cfg(unix)]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::tests::folder;
use super::*;

#[test]
fn what_others_can_write_is_not_used() {
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let files = folder("refused");
    files.keep("key", b"value");
    assert_eq!((mode(&files.folder), mode(&files.path("key"))), (0o700, 0o600));
    for bad in [0o770, 0o702] {
        set_mode(&files.folder, bad);
        assert_eq!(files.find("key"), None);
        files.keep("key", b"another");
        files.bound().unwrap_err();
        set_mode(&files.folder, 0o755);
        assert_eq!(files.find("key"), Some(b"value".to_vec()), "it was not written");
    }
    for bad in [0o620, 0o602] {
        set_mode(&files.path("key"), bad);
        assert_eq!(files.find("key"), None);
        files.keep("key", b"value");
        assert_eq!(files.find("key"), Some(b"value".to_vec()), "it was replaced");
    }

    let link = Files { folder: files.folder.with_file_name("link"), most_bytes: 1000 };
    let _ = fs::remove_file(&link.folder);
    symlink(&files.folder, &link.folder).unwrap();
    assert_eq!(link.find("key"), None);
    let text = warning::text(&link.folder, &link.check().unwrap_err()).expect("it is refused");
    assert!(text.contains("link is a symbolic link") && text.contains("GALATEA_BUILD_CACHE=off"), "{text}");
    fs::rename(files.path("key"), files.path("other")).unwrap();
    symlink(files.path("other"), files.path("key")).unwrap();
    assert_eq!(files.find("key"), None);
}
