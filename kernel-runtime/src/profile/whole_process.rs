//! A profile of the whole process. The environment names the file of its trace.

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::{Mutex, Once, PoisonError};

use super::{LIMIT, Profile, sink};
use crate::launch::prints;

/// The environment variable that names the file of the trace.
const VARIABLE: &str = "GALATEA_PROFILE";

static WHOLE: Mutex<Option<(PathBuf, Profile)>> = Mutex::new(None);

/// Reads the environment once, and starts the profile if the variable is set.
pub(super) fn ask() {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => {
            *WHOLE.lock().unwrap_or_else(PoisonError::into_inner) = Some((path.into(), Profile { sink: sink::add(LIMIT) }));
            // SAFETY: `write` does not unwind, because it catches panics.
            if unsafe { atexit(write) } != 0 {
                prints::tell(format_args!("warning: {VARIABLE}: this process cannot write a trace when it ends\n"));
            }
        }
        None => sink::set_asked(),
    });
}

unsafe extern "C" {
    /// From the C library, which every Rust program links on the systems with an NVIDIA driver.
    fn atexit(function: extern "C" fn()) -> c_int;
}

/// Writes the trace when the process ends.
extern "C" fn write() {
    let written = std::panic::catch_unwind(|| {
        let Some((path, profile)) = WHOLE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        if let Err(error) = profile.finish().write(&path) {
            prints::tell(format_args!("warning: {VARIABLE}: cannot write `{}`: {error}\n", path.display()));
        }
    });
    // A second panic while the process ends would abort it, so the payload is dropped outside of `catch_unwind`.
    drop(written);
}
