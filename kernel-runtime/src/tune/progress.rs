//! The progress line of a tuning on a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// A shorter tuning shows no progress line.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_LINES: Duration = Duration::from_millis(100);

/// A line that is overwritten in place and erased when the tuning ends. It is shown only if standard error is a terminal.
pub(super) struct Progress {
    kernel: &'static str,
    start: Instant,
    /// The time of the last update; none before the first.
    shown: Option<Instant>,
    out: Option<Box<dyn Write>>,
}

impl Progress {
    pub(super) fn new(kernel: &'static str) -> Progress {
        let out = stderr().is_terminal().then(|| Box::new(stderr()) as Box<dyn Write>);
        Progress { kernel, start: Instant::now(), shown: None, out }
    }

    /// Shows the current step.
    pub(super) fn tell(&mut self, doing: impl FnOnce() -> String) {
        if self.out.is_some() {
            self.tell_at(Instant::now(), doing);
        }
    }

    fn tell_at(&mut self, now: Instant, doing: impl FnOnce() -> String) {
        let elapsed = now.duration_since(self.start);
        let is_due = elapsed >= PATIENCE && self.shown.is_none_or(|shown| now.duration_since(shown) >= BETWEEN_LINES);
        if let (true, Some(out)) = (is_due, &mut self.out) {
            // Return to the start of the line and erase it. Errors of writing are ignored.
            let _ = write!(out, "\r\x1b[2Ktuning `{}`: {}, {:.0} s", self.kernel, doing(), elapsed.as_secs_f64());
            let _ = out.flush();
            self.shown = Some(now);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let (Some(_), Some(out)) = (self.shown, &mut self.out) {
            let _ = write!(out, "\r\x1b[2K");
            let _ = out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Terminal(Arc<Mutex<Vec<u8>>>);

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_long_tuning_shows_a_line_and_erases_it() {
        let terminal = Terminal::default();
        let start = Instant::now();
        let mut progress = Progress { kernel: "add", start, shown: None, out: Some(Box::new(terminal.clone())) };
        let mut at = |ms: u64, doing: &str| progress.tell_at(start + Duration::from_millis(ms), || doing.to_owned());
        at(900, "too early");
        at(1000, "1 of 4");
        at(1050, "too soon");
        at(2600, "2 of 4");
        drop(progress);
        let text = String::from_utf8(terminal.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "\r\x1b[2Ktuning `add`: 1 of 4, 1 s\r\x1b[2Ktuning `add`: 2 of 4, 3 s\r\x1b[2K");
    }

    #[test]
    fn a_short_tuning_leaves_no_line() {
        let terminal = Terminal::default();
        let mut progress = Progress { kernel: "add", start: Instant::now(), shown: None, out: Some(Box::new(terminal.clone())) };
        progress.tell(|| "1 of 4".to_owned());
        drop(progress);
        assert!(terminal.0.lock().unwrap().is_empty());
    }
}
