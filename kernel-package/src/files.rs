//! Files on disk: mapped to read, and replaced in one step.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use memmap2::Mmap;

use crate::error::PackageError;

/// The bytes of a file, mapped into memory. No other process may change the file while it is mapped.
pub(crate) fn map(path: &Path) -> Result<Mmap, PackageError> {
    let fail = |source| PackageError::File { path: path.to_owned(), source };
    // A folder and a device cannot be mapped, and a pipe has no end.
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        return Err(fail(std::io::Error::other("this is no regular file")));
    }
    let file = File::open(path).map_err(fail)?;
    // SAFETY: the caller promises that the file does not change. `replace` puts another file into its position.
    unsafe { Mmap::map(&file) }.map_err(fail)
}

/// Writes a file. If one exists, it is replaced in one step: a reader sees the old one or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), PackageError> {
    let fail = |source| PackageError::File { path: path.to_owned(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".galatea-");
    // As any new file: the process' mask of permissions applies. Temporary files are otherwise for their owner only.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut new = builder.tempfile_in(folder).map_err(fail)?;
    new.write_all(bytes).and_then(|()| new.as_file().sync_all()).map_err(fail)?;
    new.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}
