//! Copies of shared tensors that are written: how many there were, and a scope in which they are errors.

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use super::OpsError;
use crate::{Error, Result};

static COPIES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The number of scopes that deny copies.
    static DENIED: Cell<usize> = const { Cell::new(0) };
}

/// The number of tensors that this process has copied because they were written while they were shared.
///
/// ```
/// # use kernel_runtime::{Device, Result, ops};
/// # fn main() -> Result<()> {
/// let before = ops::copies();
/// let mut x = ops::Tensor::from(Device::cpu().tensor(&[1.0f32, 2.0])?);
/// x.view_mut::<f32>()?.fill(3.0)?;
/// let old = x.clone();
/// assert_eq!(ops::copies() - before, 0);
/// x.view_mut::<f32>()?.fill(4.0)?;
/// assert_eq!(ops::copies() - before, 1);
/// assert_eq!((old.to_vec::<f32>()?, x.to_vec::<f32>()?), (vec![3.0, 3.0], vec![4.0, 4.0]));
/// # Ok(())
/// # }
/// ```
pub fn copies() -> u64 {
    COPIES.load(Ordering::Relaxed)
}

/// Runs the closure. If it writes a tensor that is shared on this thread, that is an [`OpsError::CopyDenied`] instead of a copy.
///
/// ```
/// # use kernel_runtime::{Device, Error, Result, ops};
/// # fn main() -> Result<()> {
/// let mut cache = ops::Tensor::from(Device::cpu().zeros::<f32>(8)?);
/// let kept = cache.clone();
/// let denied = ops::deny_copies(|| cache.view_mut::<f32>().map(drop));
/// assert!(matches!(denied, Err(Error::Ops(ops::OpsError::CopyDenied { bytes: 32, .. }))));
/// drop(kept);
/// ops::deny_copies(|| cache.view_mut::<f32>()?.fill(1.0))?;
/// # Ok(())
/// # }
/// ```
pub fn deny_copies<R>(run: impl FnOnce() -> R) -> R {
    /// Leaves the scope also if the closure panics.
    struct Scope;
    impl Drop for Scope {
        fn drop(&mut self) {
            DENIED.set(DENIED.get() - 1);
        }
    }
    DENIED.set(DENIED.get() + 1);
    let _scope = Scope;
    run()
}

/// Returns an error if a copy of that many bytes is denied.
pub(super) fn allow(bytes: usize, location: &'static Location<'static>) -> Result<()> {
    if DENIED.get() > 0 { Err(Error::Ops(OpsError::CopyDenied { bytes, location: location.into() })) } else { Ok(()) }
}

/// Counts a copy that was made.
pub(super) fn count() {
    COPIES.fetch_add(1, Ordering::Relaxed);
}
