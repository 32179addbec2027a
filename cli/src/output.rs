//! Output of the commands to standard output and standard error.

use std::io::{ErrorKind, Write, stderr, stdout};

/// Writes a text to standard output. A closed pipe is no error, as in `galatea cache list | head`.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot print: {error}")),
        _ => Ok(()),
    }
}

/// Writes a line to standard error. Errors of writing are ignored.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(stderr().lock(), "{line}");
}
