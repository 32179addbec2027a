//! Systems without owners and modes: nothing is refused.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Every folder passes.
///
/// # Errors
/// None.
pub fn check_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Every way passes.
///
/// # Errors
/// None.
pub fn check_way_to(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes a folder and those above it that are not there.
///
/// # Errors
/// What the system says.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// How files of a cache are opened.
pub fn options() -> OpenOptions {
    OpenOptions::new()
}

/// Opens a file of a cache to be read.
///
/// # Errors
/// What the system says.
pub fn open(path: &Path) -> io::Result<File> {
    options().read(true).open(path)
}
