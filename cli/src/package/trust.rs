//! The options of packages that a stranger wrote.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use kernel_package::{Limits, Package};

use super::of_file;

/// Whether the writer of a package is trusted, and what the package may take otherwise.
#[derive(Args)]
pub(crate) struct Trust {
    /// Trust nothing of the package: ignore its code and its records of tuning, compile its kernels, and limit memory and time
    #[arg(long)]
    untrusted: bool,
    /// Take at most this much memory with `--untrusted` [default: 1024]
    #[arg(long, value_name = "MIB", requires = "untrusted")]
    max_memory: Option<u32>,
    /// Load, and run on the CPU, for at most this time with `--untrusted` [default: 60]
    #[arg(long, value_name = "SECONDS", requires = "untrusted")]
    max_time: Option<u32>,
}

impl Trust {
    /// The limits of an untrusted package.
    pub(super) fn limits(&self) -> Option<Limits> {
        let memory = |limits: Limits| self.max_memory.map_or(limits, |mib| limits.memory(u64::from(mib) << 20));
        let time = |limits: Limits| self.max_time.map_or(limits, |seconds| limits.time(Duration::from_secs(seconds.into())));
        self.untrusted.then(|| time(memory(Limits::new())))
    }

    /// Opens a package. Errors name the file.
    pub(super) fn open(&self, path: &Path) -> Result<Package, String> {
        match self.limits() {
            Some(limits) => Package::open_untrusted(path, limits).map_err(|error| of_file(path, &error)),
            None => super::open(path),
        }
    }

    /// The text for a terminal. That of a stranger could contain commands for it. Errors of the library name its functions, and here options.
    pub(super) fn shown(&self, text: String) -> String {
        let options = [("`Limits::new().memory(..)`", "`--max-memory`"), ("`Limits::new().time(..)`", "`--max-time`")];
        if self.untrusted { options.iter().fold(printable(&text), |text, (from, to)| text.replace(from, to)) } else { text }
    }
}

/// The text with control characters as Rust writes them.
fn printable(text: &str) -> String {
    let is_layout = |c: char| c == '\n' || c == '\t';
    text.chars().flat_map(|c| if c.is_control() && !is_layout(c) { c.escape_unicode().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_terminals_are_written_out() {
        assert_eq!(printable("\u{1b}[2J a\tb\n\u{9b}\r é"), "\\u{1b}[2J a\tb\n\\u{9b}\\u{d} é");
    }
}
