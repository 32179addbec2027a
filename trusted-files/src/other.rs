//! Systems without owners and modes: every path passes the checks.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Accepts every folder.
///
/// # Errors
/// None.
pub fn check_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Accepts every path.
///
/// # Errors
/// None.
pub fn check_way_to(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Creates a folder and its missing parents.
///
/// # Errors
/// The system's error.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// The options for opening files of a cache.
pub fn options() -> OpenOptions {
    OpenOptions::new()
}

/// Opens a file of a cache for reading.
///
/// # Errors
/// The system's error.
pub fn open(path: &Path) -> io::Result<File> {
    options().read(true).open(path)
}
