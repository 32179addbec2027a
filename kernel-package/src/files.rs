//! Files on disk: mapped to read, and replaced in one step.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use crate::error::PackageError;
use crate::limits::Limits;

/// The bytes of a file, mapped into memory. No other process may change the file while it is mapped.
pub(crate) fn map(path: &Path) -> Result<Mmap, PackageError> {
    let fail = |source| PackageError::File { path: path.to_owned(), source };
    len(path)?;
    let file = File::open(path).map_err(fail)?;
    // SAFETY: the caller promises that the file does not change. `replace` puts another file into its position.
    unsafe { Mmap::map(&file) }.map_err(fail)
}

/// The number of bytes of a regular file.
fn len(path: &Path) -> Result<u64, PackageError> {
    let fail = |source| PackageError::File { path: path.to_owned(), source };
    // A folder and a device cannot be mapped, and a pipe has no end.
    let metadata = std::fs::metadata(path).map_err(fail)?;
    if metadata.is_file() { Ok(metadata.len()) } else { Err(fail(std::io::Error::other("this is no regular file"))) }
}

/// Reads a file whose size a limit allows.
pub(crate) fn read(path: &Path, limits: Limits) -> Result<Arc<[u8]>, PackageError> {
    let fail = |source| PackageError::File { path: path.to_owned(), source };
    let len = len(path)?;
    limits.allow(len)?;
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, usize::try_from(len).unwrap_or(usize::MAX)).collect();
    if let Some(bytes) = Arc::get_mut(&mut bytes) {
        File::open(path).and_then(|mut file| file.read_exact(bytes)).map_err(fail)?;
    }
    Ok(bytes)
}

/// Writes a file. If one exists, it is replaced in one step: a reader sees the old one or the new one. `write` may write at any offset.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> Result<(), PackageError>) -> Result<(), PackageError> {
    let fail = |source| PackageError::File { path: path.to_owned(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".galatea-");
    // As any new file: the process' mask of permissions applies. Temporary files are otherwise for their owner only.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let new = builder.tempfile_in(folder).map_err(fail)?;
    let mut out = BufWriter::new(new.as_file());
    write(&mut out)?;
    out.flush().and_then(|()| new.as_file().sync_all()).map_err(fail)?;
    drop(out);
    new.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}
