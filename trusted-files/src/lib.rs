//! Files and folders that only this user, or root, can have written: what the caches on disk read and write.
//!
//! A cache holds code that runs unchecked, so whoever can write an entry can run code as the process that reads it. On Unix these functions refuse
//!
//! | what | if |
//! |---|---|
//! | a file, or a folder of the cache | it belongs to neither this user nor root, its group or everybody can write it, or it is a symbolic link |
//! | a folder above the cache | it belongs to neither, or its group or everybody can write it and it is not sticky: then somebody could put another folder in the place of the next one |
//! | a symbolic link above the cache | it belongs to neither; the folders on its way count as the others do |
//!
//! These are the rules of OpenSSH's `StrictModes`, and links besides. On other systems nothing is refused: there the user's own folders have
//! lists of who may write them, which these functions do not read.

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

/// Why a file or a folder is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    path: PathBuf,
    reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "there nothing is refused"))]
enum Reason {
    /// A symbolic link, and where it leads.
    Link(PathBuf),
    /// Neither a file nor a folder, or the other of the two.
    Kind(&'static str),
    /// It belongs to this user, and not to that one.
    Owner { owner: u32, user: u32 },
    /// Somebody else can write it.
    Mode { who: &'static str, mode: u32 },
}

impl Refused {
    /// What an error of this crate says is refused, if it is that.
    pub fn of(error: &io::Error) -> Option<&Refused> {
        error.get_ref()?.downcast_ref()
    }

    /// What to do so that it is not refused.
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

/// The bytes of a trusted file, or none if there are more than `most_bytes`, of which no more than these are read.
///
/// # Errors
/// [`Refused`], or what the system says.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    read_open(&mut open(path)?, most_bytes)
}

/// The same of a file that is open already.
///
/// # Errors
/// What the system says.
pub fn read_open(file: &mut File, most_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    if file.metadata()?.len() > most_bytes {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most_bytes).then_some(bytes))
}
