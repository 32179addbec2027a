//! The warning about entries that another user may have written.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Once;

use trusted_files::Refused;

/// Reports once in a process, which expands one crate, that entries are refused. Errors of writing the warning are ignored.
pub(super) fn warn(folder: &Path, error: &io::Error) {
    static WARNED: Once = Once::new();
    if let Some(text) = text(folder, error) {
        WARNED.call_once(|| {
            let _ = writeln!(io::stderr(), "{text}");
        });
    }
}

pub(super) fn text(folder: &Path, error: &io::Error) -> Option<String> {
    let refused = Refused::of(error)?;
    Some(format!(
        "warning: kernels are compiled anew, because somebody else may have written what an earlier build kept in {}: {refused}\nhelp: {}; or keep \
         nothing: `GALATEA_BUILD_CACHE=off`",
        folder.display(),
        refused.help()
    ))
}
