//! What the commands say on the standard output.

use std::io::{ErrorKind, Write, stdout};

/// Writes a text there. Whoever reads it may stop when he has read enough, as in `galatea cache list | head`.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot print: {error}")),
        _ => Ok(()),
    }
}
