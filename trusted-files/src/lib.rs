//! Checks that only this user or root can have written a file or folder. The disk caches use them for every access.
//!
//! A cache holds code that runs unchecked, so a user who can write an entry can run code as the process that reads it. On Unix the
//! functions of this crate refuse:
//!
//! | path | refused if |
//! |---|---|
//! | a file, or a folder of the cache | neither the user nor root owns it, its group or everybody can write it, or it is a symbolic link |
//! | a folder above the cache | neither the user nor root owns it, or its group or everybody can write it and it is not sticky |
//! | a symbolic link above the cache | neither the user nor root owns it; the folders on its path are checked like the others |
//!
//! In a writable folder that is not sticky, another user could replace the next folder of the path. The rules are those of OpenSSH's
//! `StrictModes`, with the addition of links. Other systems refuse nothing: access control lists protect the user's own folders there, and
//! these functions do not read them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

#[cfg(not(unix))]
#[path = "other.rs"]
mod system;
#[cfg(unix)]
#[path = "unix.rs"]
mod system;

pub use system::{check_folder, check_way_to, create_folder, open, options};

/// The reason why a file or a folder is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    path: PathBuf,
    reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "there nothing is refused"))]
enum Reason {
    /// A symbolic link, with its target.
    Link(PathBuf),
    /// The path does not lead to what is expected, which is named here: `file` or `folder`.
    Kind(&'static str),
    /// `owner` is neither this user nor root.
    Owner { owner: u32, user: u32 },
    /// Another user can write it.
    Mode { who: &'static str, mode: u32 },
}

impl Refused {
    /// The refusal in an error of this crate, if the error is one.
    pub fn of(error: &io::Error) -> Option<&Refused> {
        error.get_ref()?.downcast_ref()
    }

    /// The remedy: how to change the file or folder so that it is trusted.
    pub fn help(&self) -> String {
        let path = self.path.display();
        match &self.reason {
            Reason::Link(to) => format!("name what it leads to, `{}`, or remove it: `rm {path}`", to.display()),
            Reason::Kind(_) => format!("remove it: `rm -r {path}`"),
            Reason::Owner { user, .. } => format!("give it to this user, if what is in it can be trusted: `chown {user} {path}`"),
            Reason::Mode { .. } => format!("take that right away, if what is in it can be trusted: `chmod go-w {path}`"),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.path.display())?;
        match &self.reason {
            Reason::Link(_) => write!(f, "is a symbolic link"),
            Reason::Kind(wanted) => write!(f, "is no {wanted}"),
            Reason::Owner { owner, user } => write!(f, "belongs to user {owner}, neither to this one ({user}) nor to root"),
            Reason::Mode { who, mode } => write!(f, "can be written by {who} (mode {mode:04o})"),
        }
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, refused)
    }
}

/// Reads a trusted file. None if it is longer than `most_bytes`; then at most that much is read.
///
/// # Errors
/// [`Refused`], or the system's error.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    read_open(&mut open(path)?, most_bytes)
}

/// Reads a file that is open already, like [`read`].
///
/// # Errors
/// The system's error.
pub fn read_open(file: &mut File, most_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    if file.metadata()?.len() > most_bytes {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most_bytes).then_some(bytes))
}
