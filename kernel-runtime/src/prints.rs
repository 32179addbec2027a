//! Where the lines of `device_print!` and `static_print!` go, and what else users are told.

use std::cell::RefCell;
use std::fmt;
use std::io::Write;

use kernel_lang::backend::printed;
use kernel_lang::ir;

thread_local! {
    static CAPTURED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs something, and gives beside its result the lines that kernels printed by `device_print!` in launches of this thread, which would go to
/// the standard error output otherwise.
///
/// ```
/// # #[allow(unused_imports)]
/// use kernel_runtime::capture_prints;
/// let (result, lines) = capture_prints(|| 6 * 7); // launches of kernels
/// assert_eq!((result, lines.len()), (42, 0));
/// ```
pub fn capture_prints<R>(work: impl FnOnce() -> R) -> (R, Vec<String>) {
    /// Puts back what was there, also if `work` panics.
    struct Outer(Option<Vec<String>>);
    impl Drop for Outer {
        fn drop(&mut self) {
            CAPTURED.with_borrow_mut(|lines| *lines = self.0.take());
        }
    }
    let outer = Outer(CAPTURED.replace(Some(Vec::new())));
    let result = work();
    let lines = CAPTURED.with_borrow_mut(|lines| lines.replace(Vec::new())).unwrap_or_default();
    drop(outer);
    (result, lines)
}

/// A line for the user.
pub(crate) fn show(line: String) {
    let shown = CAPTURED.with_borrow_mut(|lines| match lines {
        Some(lines) => {
            lines.push(line);
            None
        }
        None => Some(line),
    });
    if let Some(line) = shown {
        tell(format_args!("{line}\n"));
    }
}

/// Writes to the standard error output. Where nobody reads it any more, nothing is said: that is no reason to end the program.
pub(crate) fn tell(text: fmt::Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

/// Shows what a launch of that kernel left in its buffer.
pub(crate) fn show_buffer(func: &ir::Function, buffer: &[u64]) {
    let printed = printed::read(func, buffer);
    printed.lines.into_iter().for_each(show);
    if printed.lost > 0 {
        let bytes = |words: u64| words * 8;
        let (lost, room) = (bytes(printed.lost), bytes(printed::WORDS as u64));
        show(format!("`{}` printed {lost} bytes more than the {room} that there is room for", func.name));
    }
}
