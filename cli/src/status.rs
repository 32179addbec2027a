//! The exit status of another program as our own.

use std::process::{ExitCode, ExitStatus};

/// The code of the program; 128 and the number of the signal for a program that a signal ended, as in a shell.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or_else(|| signal.map(|signal| 128 + signal));
    // Windows has codes that are no bytes.
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
