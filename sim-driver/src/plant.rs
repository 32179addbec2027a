//! What no driver has: failures that a test plants, and counts that it asks for. A test finds these functions by `cuGetProcAddress`.

use std::ffi::{CStr, c_char, c_void};

use cudarc::driver::sys::CUresult;

use crate::call::call;
use crate::state::State;

/// A call that is to fail.
pub(crate) struct Planted {
    function: String,
    /// So many calls of the function go well before.
    skipped: u32,
    code: CUresult,
}

impl State {
    /// Does this call of a function fail? Each planted failure does so once.
    pub(crate) fn may_fail(&mut self, function: &str) -> Result<(), CUresult> {
        let Some(place) = self.planted.iter().position(|planted| planted.function == function) else { return Ok(()) };
        if self.planted[place].skipped > 0 {
            self.planted[place].skipped -= 1;
            return Ok(());
        }
        Err(self.planted.remove(place).code)
    }
}

/// Makes a later call of a function fail with that code, and do nothing: the one after the next `skipped`.
///
/// # Safety
/// `function` is terminated, and `code` one of the driver's.
unsafe extern "C" fn fail(function: *const c_char, skipped: u32, code: CUresult) -> CUresult {
    // SAFETY: as the caller promises.
    let function = unsafe { CStr::from_ptr(function) }.to_string_lossy().into_owned();
    call(|state| {
        state.planted.push(Planted { function, skipped, code });
        Ok(())
    })
}

/// Takes back what was planted and has not come up.
extern "C" fn forgive() -> CUresult {
    call(|state| {
        state.planted.clear();
        Ok(())
    })
}

/// How many streams and events there are, and how many calls have failed.
///
/// # Safety
/// All can be written.
unsafe extern "C" fn count(streams: *mut usize, events: *mut usize, failed: *mut usize) -> CUresult {
    call(|state| {
        // SAFETY: as the caller promises.
        unsafe {
            streams.write(state.streams.len());
            events.write(state.events.len());
            failed.write(state.failed);
        }
        Ok(())
    })
}

/// The function of that name.
pub(crate) fn find(name: &CStr) -> Option<*mut c_void> {
    match name.to_bytes() {
        b"simDriverFail" => Some(fail as *mut c_void),
        b"simDriverForgive" => Some(forgive as *mut c_void),
        b"simDriverCount" => Some(count as *mut c_void),
        _ => None,
    }
}
