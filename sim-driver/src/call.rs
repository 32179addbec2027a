//! The common parts of all driver calls: the state lock, the current context, results and handles.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::CUresult;

use crate::state::State;

static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    /// The current context of the thread: the number of its GPU.
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
}

pub(crate) fn current() -> Option<usize> {
    CURRENT.get()
}

pub(crate) fn set_current(gpu: Option<usize>) {
    CURRENT.set(gpu);
}

/// Initialises the driver. Later calls keep the existing state.
pub(crate) fn init() -> CUresult {
    STATE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(State::new);
    CUresult::CUDA_SUCCESS
}

/// Runs a call that needs no context.
pub(crate) fn call(work: impl FnOnce(&mut State) -> Result<(), CUresult>) -> CUresult {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(state) = state.as_mut() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    if let Some(lost) = state.lost {
        return lost;
    }
    // A panic must not unwind into the caller, which may be foreign code.
    let outcome = catch_unwind(AssertUnwindSafe(|| work(state))).unwrap_or(Err(CUresult::CUDA_ERROR_UNKNOWN));
    let code = match (outcome, state.lost) {
        (_, Some(lost)) => lost,
        (Ok(()), None) => CUresult::CUDA_SUCCESS,
        (Err(code), None) => code,
    };
    state.failed += usize::from(code != CUresult::CUDA_SUCCESS);
    code
}

/// Runs a call in the thread's current context; `work` receives the number of its GPU.
pub(crate) fn call_in_context(work: impl FnOnce(&mut State, usize) -> Result<(), CUresult>) -> CUresult {
    call(|state| work(state, current().ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?))
}

/// Writes a result through a pointer of the caller.
///
/// # Safety
/// `target` is null or valid for writes.
pub(crate) unsafe fn answer<T>(target: *mut T, value: T) -> Result<(), CUresult> {
    if target.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: `target` is not null, so the caller guarantees that it is valid for writes.
    unsafe { target.write(value) };
    Ok(())
}

/// A handle of the driver API: a pointer that is never dereferenced.
pub(crate) fn handle<T>(number: usize) -> *mut T {
    std::ptr::without_provenance_mut(number)
}
