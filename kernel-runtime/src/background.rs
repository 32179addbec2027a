//! Compiling on another thread, while launches run a variant that counts on less.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use kernel_lang::Schedule;

use crate::fact::Key;
use crate::gpu::Gpu;
use crate::kernel::{Kernel, Table};
use crate::{Error, Result};

/// A key whose own variant is not there yet.
pub(crate) struct Pending<L> {
    /// What runs meanwhile.
    instead: L,
    /// Has somebody begun to compile?
    begun: AtomicBool,
    /// Set if it cannot be compiled, with the reason until a launch has told it.
    failed: OnceLock<Mutex<Option<Error>>>,
}

/// The function that a GPU runs for this key, without waiting for a compiler where another can serve.
#[inline]
pub(crate) fn at_once<G: Gpu, const N: usize>(
    kernel: &'static Kernel,
    gpu: G,
    key: &Key<N>,
    schedule: Option<Schedule>,
) -> Result<G::Loaded> {
    let table = kernel.table(gpu);
    if let Some(ready) = kernel.ready(gpu, table, key.as_ref(), schedule) {
        return ready;
    }
    match table.pending.find(schedule, key.as_ref()) {
        Some(pending) => pending.serve(),
        None => begin(kernel, gpu, table, key, schedule),
    }
}

impl<L: Clone> Pending<L> {
    /// What runs meanwhile; once, why it will stay so.
    fn serve(&self) -> Result<L> {
        let untold = self.failed.get().and_then(|error| error.lock().unwrap_or_else(PoisonError::into_inner).take());
        untold.map_or_else(|| Ok(self.instead.clone()), Err)
    }
}

/// The first launch of a key: what can serve it, if anything can, while a thread compiles.
#[cold]
fn begin<G: Gpu, const N: usize>(
    kernel: &'static Kernel,
    gpu: G,
    table: &'static Table<G::Loaded>,
    key: &Key<N>,
    schedule: Option<Schedule>,
) -> Result<G::Loaded> {
    let Some(instead) = kernel.serving(gpu, table, key, schedule) else {
        return kernel.compile(gpu, table, key.as_ref(), schedule);
    };
    let pending = Pending { instead: instead?, begun: AtomicBool::new(false), failed: OnceLock::new() };
    let pending = table.pending.keep(schedule, key.as_ref(), pending);
    // Of several threads that come here at once, one begins. Without a compiler in the program nobody does.
    if cfg!(feature = "jit") && !pending.begun.swap(true, Ordering::Relaxed) {
        let (gpu, key) = (gpu.anywhere(), *key);
        let compile = move || {
            let compile = AssertUnwindSafe(|| kernel.compile(gpu, table, key.as_ref(), schedule));
            let outcome = catch_unwind(compile).unwrap_or_else(|_| Err(kernel.crashed(key.as_ref())));
            if let Err(error) = outcome {
                // Nobody else says so: one thread compiles.
                let _ = pending.failed.set(Mutex::new(Some(error)));
            }
        };
        if std::thread::Builder::new().name(format!("compile {}", kernel.name())).spawn(compile).is_err() {
            // Without another thread it is this one's work.
            return kernel.compile(gpu, table, key.as_ref(), schedule);
        }
    }
    pending.serve()
}
