//! What all calls have in common.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::CUresult;

use crate::state::State;

static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    /// The thread's own context: the number of its GPU.
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
}

pub(crate) fn current() -> Option<usize> {
    CURRENT.get()
}

pub(crate) fn set_current(gpu: Option<usize>) {
    CURRENT.set(gpu);
}

/// Makes the state. Only once: what a process has done to its GPUs stays.
pub(crate) fn init() -> CUresult {
    STATE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(State::new);
    CUresult::CUDA_SUCCESS
}

/// A call that wants no context.
pub(crate) fn call(work: impl FnOnce(&mut State) -> Result<(), CUresult>) -> CUresult {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(state) = state.as_mut() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    if let Some(lost) = state.lost {
        return lost;
    }
    // A panic must not reach the caller, which may be no Rust.
    let outcome = catch_unwind(AssertUnwindSafe(|| work(state))).unwrap_or(Err(CUresult::CUDA_ERROR_UNKNOWN));
    let code = match (outcome, state.lost) {
        (_, Some(lost)) => lost,
        (Ok(()), None) => CUresult::CUDA_SUCCESS,
        (Err(code), None) => code,
    };
    state.failed += usize::from(code != CUresult::CUDA_SUCCESS);
    code
}

/// A call with the thread's own context: it is given the number of its GPU.
pub(crate) fn call_in_context(work: impl FnOnce(&mut State, usize) -> Result<(), CUresult>) -> CUresult {
    call(|state| work(state, current().ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?))
}

/// Writes an answer where the caller wants it.
///
/// # Safety
/// `place` is null or can be written.
pub(crate) unsafe fn answer<T>(place: *mut T, value: T) -> Result<(), CUresult> {
    if place.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    unsafe { place.write(value) };
    Ok(())
}

/// A handle as the interface has it: a pointer to nothing.
pub(crate) fn handle<T>(number: usize) -> *mut T {
    std::ptr::without_provenance_mut(number)
}
