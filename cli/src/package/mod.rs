//! The commands for packages, the files of recorded programs: `inspect`, `verify`, `run` and `diff`.

mod diff;
mod inputs;
mod inspect;
mod run;
mod summary;
mod trust;
mod verify;

use std::path::Path;

use kernel_package::{Package, PackageError};

pub(crate) use diff::Diff;
pub(crate) use inspect::Inspect;
pub(crate) use run::Run;
pub(crate) use verify::Verify;

/// Opens a package. Errors name the file.
fn open(path: &Path) -> Result<Package, String> {
    Package::open(path).map_err(|error| of_file(path, &error))
}

/// An error of a package with the name of its file.
fn of_file(path: &Path, error: &PackageError) -> String {
    match error {
        // It names the file itself.
        PackageError::File { .. } => error.to_string(),
        _ => format!("{}: {error}", path.display()),
    }
}
