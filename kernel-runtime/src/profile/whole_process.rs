//! A profile of a program as it is: the environment names the file.

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::{Mutex, Once, PoisonError};

use super::{LIMIT, Profile, sink};
use crate::prints;

/// The environment variable that names the file of the trace.
const VARIABLE: &str = "GALATEA_PROFILE";

static WHOLE: Mutex<Option<(PathBuf, Profile)>> = Mutex::new(None);

/// Asks the environment once whether the process is to be profiled.
pub(super) fn ask() {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => {
            *WHOLE.lock().unwrap_or_else(PoisonError::into_inner) = Some((path.into(), Profile { sink: sink::add(LIMIT) }));
            // SAFETY: `write` unwinds into nobody: it catches what panics.
            if unsafe { atexit(write) } != 0 {
                prints::tell(format_args!("warning: {VARIABLE}: this process cannot write a trace when it ends\n"));
            }
        }
        None => sink::set_asked(),
    });
}

unsafe extern "C" {
    /// Of the C library, which every Rust program of the systems with an NVIDIA driver is linked to.
    fn atexit(function: extern "C" fn()) -> c_int;
}

/// Writes the trace, as the process ends.
extern "C" fn write() {
    let written = std::panic::catch_unwind(|| {
        let Some((path, profile)) = WHOLE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        if let Err(error) = profile.finish().write(&path) {
            prints::tell(format_args!("warning: {VARIABLE}: cannot write `{}`: {error}\n", path.display()));
        }
    });
    // A second panic while the process ends would abort it.
    drop(written);
}
