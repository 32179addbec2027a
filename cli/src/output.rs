//! What the commands say on the standard output and on the standard error output.

use std::io::{ErrorKind, Write, stderr, stdout};

/// Writes a text there. Whoever reads it may stop when he has read enough, as in `galatea cache list | head`.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot print: {error}")),
        _ => Ok(()),
    }
}

/// Writes a line to the standard error output. Where nobody reads it any more, nothing is said.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(stderr().lock(), "{line}");
}
