//! Test hooks that no real driver has: planted failures and counters. Tests find these functions with `cuGetProcAddress`.

use std::ffi::{CStr, c_char, c_void};

use cudarc::driver::sys::CUresult;

use crate::call::call;
use crate::state::State;

/// A planted failure.
pub(crate) struct Planted {
    function: String,
    /// The number of calls of the function that still succeed before the failure.
    skipped: u32,
    code: CUresult,
}

impl State {
    /// Fails if a failure is planted for this call. Each planted failure happens once.
    pub(crate) fn may_fail(&mut self, function: &str) -> Result<(), CUresult> {
        let Some(index) = self.planted.iter().position(|planted| planted.function == function) else { return Ok(()) };
        if self.planted[index].skipped > 0 {
            self.planted[index].skipped -= 1;
            return Ok(());
        }
        Err(self.planted.remove(index).code)
    }
}

/// Plants a failure: after `skipped` successful calls of a function, its next call returns this code and does nothing.
///
/// # Safety
/// `function` is null-terminated, and `code` is a code of the driver API.
unsafe extern "C" fn fail(function: *const c_char, skipped: u32, code: CUresult) -> CUresult {
    // SAFETY: the caller guarantees valid pointers, as the driver API requires.
    let function = unsafe { CStr::from_ptr(function) }.to_string_lossy().into_owned();
    call(|state| {
        state.planted.push(Planted { function, skipped, code });
        Ok(())
    })
}

/// Removes all planted failures that have not happened.
extern "C" fn forgive() -> CUresult {
    call(|state| {
        state.planted.clear();
        Ok(())
    })
}

/// Returns the numbers of streams and events, and the number of failed calls.
///
/// # Safety
/// All pointers are valid for writes.
unsafe extern "C" fn count(streams: *mut usize, events: *mut usize, failed: *mut usize) -> CUresult {
    call(|state| {
        // SAFETY: the caller guarantees valid pointers, as the driver API requires.
        unsafe {
            streams.write(state.streams.len());
            events.write(state.events.len());
            failed.write(state.failed);
        }
        Ok(())
    })
}

/// Returns the number of tensor maps that were encoded.
///
/// # Safety
/// The pointer is valid for writes.
unsafe extern "C" fn encoded(maps: *mut usize) -> CUresult {
    call(|state| {
        // SAFETY: the caller guarantees a valid pointer, as the driver API requires.
        unsafe { maps.write(state.encoded) };
        Ok(())
    })
}

/// Returns the number of modules that are loaded.
///
/// # Safety
/// The pointer is valid for writes.
unsafe extern "C" fn modules(loaded: *mut usize) -> CUresult {
    call(|state| {
        // SAFETY: the caller guarantees a valid pointer, as the driver API requires.
        unsafe { loaded.write(state.modules.len()) };
        Ok(())
    })
}

/// The test hook with this name.
pub(crate) fn find(name: &CStr) -> Option<*mut c_void> {
    match name.to_bytes() {
        b"simDriverFail" => Some(fail as *mut c_void),
        b"simDriverForgive" => Some(forgive as *mut c_void),
        b"simDriverCount" => Some(count as *mut c_void),
        b"simDriverEncoded" => Some(encoded as *mut c_void),
        b"simDriverModules" => Some(modules as *mut c_void),
        _ => None,
    }
}
