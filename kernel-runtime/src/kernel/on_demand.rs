//! A value that is made when it is first needed, once.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::Result;

/// A value, or what makes it. Attempts that fail are repeated.
pub(crate) struct OnDemand<T> {
    value: OnceLock<T>,
    /// Makes the value; dropped once the value is made. The lock is held meanwhile, so that other threads wait for the value.
    make: Mutex<Option<Make<T>>>,
}

type Make<T> = Box<dyn Fn() -> Result<T> + Send>;

impl<T> OnDemand<T> {
    /// A value that is made already.
    pub(crate) fn of(value: T) -> OnDemand<T> {
        OnDemand { value: OnceLock::from(value), make: Mutex::new(None) }
    }

    /// A value that is made when it is first needed.
    pub(crate) fn new(make: impl Fn() -> Result<T> + Send + 'static) -> OnDemand<T> {
        OnDemand { value: OnceLock::new(), make: Mutex::new(Some(Box::new(make))) }
    }

    /// The value. Makes it if it is not made yet, or waits for the thread that makes it.
    #[inline]
    pub(crate) fn get(&self) -> Result<&T> {
        match self.value.get() {
            Some(value) => Ok(value),
            None => self.make(),
        }
    }

    #[cold]
    fn make(&self) -> Result<&T> {
        let mut make = self.make.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(make) = &*make {
            let value = make()?;
            // `set` cannot fail, because the lock is held.
            let _ = self.value.set(value);
        }
        *make = None;
        match self.value.get() {
            Some(value) => Ok(value),
            None => unreachable!("what makes the value is dropped only once the value is made"),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for OnDemand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnDemand").field(&self.value.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::Error;

    /// A value that is the number of its attempt, of which the first ones fail.
    fn counted(failures: usize) -> (OnDemand<usize>, Arc<AtomicUsize>) {
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let make = move || {
            let attempt = count.fetch_add(1, Ordering::SeqCst) + 1;
            // Other threads arrive meanwhile.
            std::thread::sleep(Duration::from_millis(20));
            if attempt > failures { Ok(attempt) } else { Err(Error::EventNotRecorded) }
        };
        (OnDemand::new(make), made)
    }

    #[test]
    fn threads_make_a_value_once() {
        let (value, made) = counted(0);
        assert_eq!(made.load(Ordering::SeqCst), 0, "nothing needs it yet");
        std::thread::scope(|scope| {
            (0..8).for_each(|_| _ = scope.spawn(|| assert_eq!(*value.get().unwrap(), 1)));
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
        // What made it is dropped, and the count with it.
        assert_eq!(Arc::strong_count(&made), 1);
    }

    #[test]
    fn an_attempt_that_fails_is_repeated() {
        let (value, made) = counted(2);
        assert!(value.get().is_err() && value.get().is_err());
        assert_eq!((*value.get().unwrap(), *value.get().unwrap(), made.load(Ordering::SeqCst)), (3, 3, 3));
    }

    #[test]
    fn an_attempt_that_panics_is_repeated() {
        let attempts = AtomicUsize::new(0);
        let attempts: &'static AtomicUsize = Box::leak(Box::new(attempts));
        let value = OnDemand::new(|| {
            assert!(attempts.fetch_add(1, Ordering::SeqCst) > 0, "the first attempt");
            Ok(7)
        });
        std::thread::scope(|scope| assert!(scope.spawn(|| value.get().copied()).join().is_err()));
        assert_eq!(*value.get().unwrap(), 7);
    }
}
