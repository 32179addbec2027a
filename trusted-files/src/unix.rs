//! The checks of owners and modes on Unix.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use crate::{Reason, Refused};

/// In a sticky folder, only the owners of a file and of the folder can rename or remove the file.
const STICKY: u32 = 0o1000;
const BY_GROUP: u32 = 0o020;
const BY_ALL: u32 = 0o002;
/// The number of symbolic links that the system itself follows.
const MOST_LINKS: usize = 40;

/// Checks a folder of a cache, without its parents. A folder that does not exist passes.
///
/// # Errors
/// [`Refused`], or the system's error.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    let Some(metadata) = unless_missing(fs::symlink_metadata(folder))? else { return Ok(()) };
    refuse_link(folder, &metadata)?;
    if !metadata.is_dir() {
        return Err(refused(folder, Reason::Kind("folder")));
    }
    check_owner(folder, &metadata)?;
    check_mode(folder, &metadata)
}

/// Checks every folder above `folder`, and every symbolic link in its path, as far as they exist.
///
/// # Errors
/// [`Refused`], or the system's error.
pub fn check_way_to(folder: &Path) -> io::Result<()> {
    let folder = std::path::absolute(folder)?;
    let names = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
    // The path components that are not checked yet, the next one last.
    let mut left = names(folder.parent().unwrap_or(&folder));
    let mut at = PathBuf::new();
    let mut links = 0;
    while let Some(name) = left.pop() {
        match Path::new(&name).components().next() {
            Some(Component::ParentDir) => {
                at.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            Some(Component::RootDir) => at = PathBuf::from("/"),
            Some(_) => at.push(&name),
        }
        let Some(metadata) = unless_missing(fs::symlink_metadata(&at))? else { return Ok(()) };
        check_owner(&at, &metadata)?;
        if metadata.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(refused(&at, Reason::Kind("folder")));
            }
            left.extend(names(&fs::read_link(&at)?));
            at.pop();
        } else if metadata.is_dir() && metadata.mode() & STICKY == 0 {
            check_mode(&at, &metadata)?;
        }
    }
    Ok(())
}

/// Creates a folder and its missing parents, accessible to this user alone.
///
/// # Errors
/// The system's error.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The options for opening files of a cache: new files are accessible to this user alone, and symbolic links are not followed.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // Opening a path that is not a file, such as a pipe, must not block.
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Opens a file of a cache for reading.
///
/// # Errors
/// [`Refused`], or the system's error.
pub fn open(path: &Path) -> io::Result<File> {
    let file = match options().read(true).open(path) {
        Ok(file) => file,
        Err(error) => {
            // Systems return different errors for a symbolic link.
            if let Ok(metadata) = fs::symlink_metadata(path) {
                refuse_link(path, &metadata)?;
            }
            return Err(error);
        }
    };
    // Check the open file, because its name may denote another file by now.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused(path, Reason::Kind("file")));
    }
    check_owner(path, &metadata)?;
    check_mode(path, &metadata)?;
    Ok(file)
}

fn refuse_link(path: &Path, metadata: &Metadata) -> io::Result<()> {
    if !metadata.is_symlink() {
        return Ok(());
    }
    let to = fs::canonicalize(path).or_else(|_| fs::read_link(path)).unwrap_or_default();
    Err(refused(path, Reason::Link(to)))
}

fn check_owner(path: &Path, metadata: &Metadata) -> io::Result<()> {
    // SAFETY: the call only returns a number and cannot fail.
    let user = unsafe { libc::geteuid() };
    let owner = metadata.uid();
    if owner == user || owner == 0 { Ok(()) } else { Err(refused(path, Reason::Owner { owner, user })) }
}

fn check_mode(path: &Path, metadata: &Metadata) -> io::Result<()> {
    let mode = metadata.mode() & 0o7777;
    let who = match mode {
        mode if mode & BY_ALL != 0 => "everybody",
        mode if mode & BY_GROUP != 0 => "its group",
        _ => return Ok(()),
    };
    Err(refused(path, Reason::Mode { who, mode }))
}

fn refused(path: &Path, reason: Reason) -> io::Error {
    Refused { path: path.to_owned(), reason }.into()
}

fn unless_missing(metadata: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match metadata {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn reason(result: io::Result<()>) -> String {
        let error = result.unwrap_err();
        let refused = Refused::of(&error).expect("it is refused");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        format!("{refused}; {}", refused.help())
    }

    #[test]
    fn a_refusal_names_the_reason_and_the_remedy() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        let [folder, file, link] = ["folder", "file", "link"].map(|name| outer.join(name));
        create_folder(&folder).unwrap();
        fs::write(&file, "text").unwrap();
        set_mode(&file, 0o644);
        symlink(&folder, &link).unwrap();
        let name = |path: &Path| path.display().to_string();
        let (folder_name, link_name, file_name) = (name(&folder), name(&link), name(&file));
        assert_eq!(
            reason(check_folder(&link)),
            format!("{link_name} is a symbolic link; name what it leads to, `{folder_name}`, or remove it: `rm {link_name}`")
        );
        assert_eq!(reason(check_folder(&file)), format!("{file_name} is no folder; remove it: `rm -r {file_name}`"));
        set_mode(&folder, 0o770);
        assert_eq!(
            reason(check_folder(&folder)),
            format!(
                "{folder_name} can be written by its group (mode 0770); take that right away, if what is in it can be trusted: `chmod go-w {folder_name}`"
            )
        );
        assert!(reason(open(&folder).map(drop)).contains("is no file"));
        assert!(open(&file).is_ok() && check_folder(&outer.join("nothing")).is_ok());
        assert_eq!(open(&outer.join("nothing")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn every_folder_and_link_on_the_way_counts() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        let path = |name: &str| outer.join(name);
        for folder in ["a/b/c", "x/y"] {
            create_folder(&path(folder)).unwrap();
        }
        symlink("../../x/y", path("a/b/link")).unwrap();
        symlink("loop", path("loop")).unwrap();
        let ways = ["a/b/link/store", "a/b/link/../y/store", "a/b/link/nothing/yet/store"];
        ways.iter().for_each(|way| check_way_to(&path(way)).unwrap());
        // The folder of the link, a folder that only the link leads through, and the last folder.
        for folder in ["a/b", "x", "x/y"] {
            set_mode(&path(folder), 0o777);
            for way in ways {
                assert!(reason(check_way_to(&path(way))).starts_with(&format!("{} can be", path(folder).display())), "{folder}, {way}");
            }
            set_mode(&path(folder), 0o1777);
            ways.iter().for_each(|way| check_way_to(&path(way)).unwrap());
            set_mode(&path(folder), 0o755);
        }
        // The folder itself is not checked.
        set_mode(&path("a/b/c"), 0o777);
        check_way_to(&path("a/b/c")).unwrap();
        assert!(check_way_to(&path("a/b/c/d")).is_err());
        assert!(reason(check_way_to(&path("loop/store"))).contains("is no folder"));
    }

    #[test]
    fn no_more_is_read_than_was_asked_for() {
        let outer = tempfile::tempdir().unwrap();
        let file = outer.path().join("file");
        fs::write(&file, "12345").unwrap();
        set_mode(&file, 0o600);
        assert_eq!(crate::read(&file, 5).unwrap().as_deref(), Some(&b"12345"[..]));
        assert_eq!(crate::read(&file, 4).unwrap(), None);
        // A file without a length of its own is bounded too.
        let mut endless = File::open("/dev/zero").unwrap();
        assert_eq!(crate::read_open(&mut endless, 1000).unwrap(), None);
    }
}
