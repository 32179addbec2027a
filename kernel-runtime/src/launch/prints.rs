//! Output of `device_print!` and `static_print!`, and other messages to the user.

use std::cell::RefCell;
use std::fmt;
use std::io::Write;

use kernel_lang::backend::print_records;
use kernel_lang::ir;

thread_local! {
    static CAPTURED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs `work`. Returns its result and the lines that kernels printed with `device_print!` in launches of this thread. Without this function, the
/// lines go to the standard error output.
///
/// ```
/// # #[allow(unused_imports)]
/// use kernel_runtime::capture_prints;
/// let (result, lines) = capture_prints(|| 6 * 7); // launches of kernels
/// assert_eq!((result, lines.len()), (42, 0));
/// ```
pub fn capture_prints<R>(work: impl FnOnce() -> R) -> (R, Vec<String>) {
    /// Restores the previous state, also if `work` panics.
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

/// Shows a line to the user.
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

/// Writes to the standard error output. A failure, such as a closed pipe, is ignored, because it must not end the program.
pub(crate) fn tell(text: fmt::Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

/// Shows the lines that a launch of this kernel left in its print buffer.
pub(crate) fn show_buffer(func: &ir::Function, buffer: &[u64]) {
    let printed = print_records::read(func, buffer);
    printed.lines.into_iter().for_each(show);
    if printed.lost > 0 {
        let bytes = |words: u64| words * 8;
        let (lost, room) = (bytes(printed.lost), bytes(print_records::WORDS as u64));
        show(format!("`{}` printed {lost} bytes more than the {room} that there is room for", func.name));
    }
}
